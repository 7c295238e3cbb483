// What happens when the wall clock of a machine is stepped back while gRPC waits. gRPC 1.51 waits
// for its timers until a moment of the wall clock, so none of them fires until that moment comes,
// if it is hours away: no deadline ends a call, and no channel dials again. Nothing of ours may
// rest on them.
//
// The wall clock of this program is an hour ahead of the kernel's: each such wait ends an hour
// late, as after a step of an hour back. So these tests have a program of their own.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <string>

#include "common/sync/mutex.h"
#include "rendezvous.grpc.pb.h"
#include "sidecar/rendezvous/rendezvous.h"

// In the place of libc's, for all that is linked into this program.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto status = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (status == 0 && clock == CLOCK_REALTIME) time->tv_sec += 3600;
  return status;
}

namespace ringmaster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kDeadline{500};

// On a port of its own choice, or on that of one before it.
std::unique_ptr<grpc::Server> Serve(grpc::Service* service, int* port) {
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort("127.0.0.1:" + std::to_string(*port), grpc::InsecureServerCredentials(),
                           port);
  builder.RegisterService(service);
  return builder.BuildAndStart();
}

class OtherSidecar final : public v1::Rendezvous::Service {
 public:
  explicit OtherSidecar(int port = 0) : port_(port), server_(Serve(this, &port_)) {}
  ~OtherSidecar() override {
    SetSilent(false);
    server_->Shutdown(std::chrono::system_clock::now());
  }

  int port() const { return port_; }
  int heard() const { return heard_; }
  void SetSilent(bool silent) {
    const sync::MutexLock lock(&mu_);
    silent_ = silent;
    answers_.NotifyAll();
  }

 private:
  grpc::Status Deliver(grpc::ServerContext* context, const v1::MemberMessage*,
                       v1::Delivered*) override {
    const sync::MutexLock lock(&mu_);
    // Only the connection that there was, like one through a link that was cut.
    if (silent_ && silent_peer_.empty()) silent_peer_ = context->peer();
    while (silent_ && context->peer() == silent_peer_) answers_.Wait(&mu_);
    ++heard_;
    return grpc::Status::OK;
  }

  sync::Mutex mu_;
  sync::CondVar answers_;
  bool silent_ GUARDED_BY(mu_) = false;
  std::string silent_peer_ GUARDED_BY(mu_);
  std::atomic<int> heard_{0};
  int port_;
  std::unique_ptr<grpc::Server> server_;
};

std::string AddressOf(int port) { return "127.0.0.1:" + std::to_string(port); }

class ClockStepTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Reach(anchor_)); }
  void TearDown() override { client_->Stop(); }

  // False: it has not come about for long.
  bool Until(const std::function<bool()>& condition, const std::function<void()>& again = {}) {
    const auto deadline = Clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (Clock::now() > deadline) return false;
      if (again) again();
      loop_.run_for(milliseconds(150));
    }
    return true;
  }

  void Send(int port) {
    client_->Send(AddressOf(port), {}, kDeadline, [this](const std::string&) { ++failed_; });
  }
  // Sends until something arrives.
  bool Reach(const OtherSidecar& other) {
    return Until([&] { return other.heard() > 0; }, [&] { Send(other.port()); });
  }

  asio::io_context loop_;
  const asio::executor_work_guard<asio::io_context::executor_type> busy_{loop_.get_executor()};
  int failed_ = 0;
  OtherSidecar anchor_;  // a channel to it stays
  std::unique_ptr<RendezvousClient> client_ = RendezvousClient::Create(&loop_, "job-uid", "");
};

TEST_F(ClockStepTest, ASidecarThatIsStartedAgainIsReached) {
  auto other = std::make_unique<OtherSidecar>();
  const int port = other->port();
  ASSERT_TRUE(Reach(*other));
  other.reset();
  const int failed = failed_;
  ASSERT_TRUE(Until([&] { return failed_ >= failed + 3; }, [&] { Send(port); }));
  other = std::make_unique<OtherSidecar>(port);
  EXPECT_TRUE(Reach(*other)) << "it was not there once, and is not dialled any more";
}

TEST_F(ClockStepTest, AMessageWithoutAnswerFailsAndTheNextGoesOverANewConnection) {
  OtherSidecar other;
  ASSERT_TRUE(Reach(other));
  other.SetSilent(true);
  const int heard = other.heard();
  EXPECT_TRUE(Until([&] { return other.heard() > heard; }, [&] { Send(other.port()); }));
  EXPECT_TRUE(Until([&] { return failed_ > 0; }));
}

}  // namespace
}  // namespace ringmaster::rendezvous
