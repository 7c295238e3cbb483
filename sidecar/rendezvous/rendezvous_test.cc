#include "sidecar/rendezvous/rendezvous.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "common/sync/mutex.h"
#include "rendezvous.grpc.pb.h"

namespace ringmaster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;

// A sidecar that remembers over which connection it was called last.
class OtherSidecar final : public v1::Rendezvous::Service {
 public:
  OtherSidecar() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address = "127.0.0.1:" + std::to_string(port);
  }
  ~OtherSidecar() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Deliver(grpc::ServerContext* context, const v1::MemberMessage*,
                       v1::Delivered*) override {
    const sync::MutexLock lock(&mu_);
    while (silent_) answers_.Wait(&mu_);
    connection_ = context->peer();
    return grpc::Status::OK;
  }
  // From now on calls are not answered, or are again.
  void SetSilent(bool silent) {
    const sync::MutexLock lock(&mu_);
    silent_ = silent;
    answers_.NotifyAll();
  }
  std::string TakeConnection() {
    const sync::MutexLock lock(&mu_);
    return std::exchange(connection_, "");
  }

  std::string address;

 private:
  sync::Mutex mu_;
  sync::CondVar answers_;
  bool silent_ GUARDED_BY(mu_) = false;
  std::string connection_ GUARDED_BY(mu_);
  std::unique_ptr<grpc::Server> server_;
};

class RendezvousClientTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(ConnectionOf(anchor_), ""); }
  void TearDown() override { client_->Stop(); }

  // Of a message sent now; empty if none arrived.
  std::string ConnectionOf(OtherSidecar& to) {
    client_->Send(to.address, {}, std::chrono::seconds(30), {});
    const auto deadline = Clock::now() + std::chrono::seconds(30);
    std::string connection;
    while (connection.empty() && Clock::now() < deadline) {
      loop_.run_for(std::chrono::milliseconds(1));
      connection = to.TakeConnection();
    }
    return connection;
  }

  OtherSidecar anchor_;  // a channel to it stays
  asio::io_context loop_;
  const asio::executor_work_guard<asio::io_context::executor_type> busy_{loop_.get_executor()};
  std::unique_ptr<RendezvousClient> client_ = RendezvousClient::Create(&loop_, "job-uid", "");
};

TEST_F(RendezvousClientTest, ConnectionsToThoseWhoAreNoMembersAnyMoreAreClosedAndTheOthersStay) {
  OtherSidecar stays, goes;
  const std::string to_stays = ConnectionOf(stays), to_goes = ConnectionOf(goes);
  ASSERT_NE(to_stays, "");
  ASSERT_NE(to_goes, "");
  EXPECT_EQ(ConnectionOf(goes), to_goes) << "one for all messages";
  client_->Retain({stays.address, anchor_.address});
  EXPECT_EQ(ConnectionOf(stays), to_stays);
  const std::string anew = ConnectionOf(goes);
  EXPECT_NE(anew, "") << "it may still be spoken to";
  EXPECT_NE(anew, to_goes);
}

TEST_F(RendezvousClientTest, AfterAMessageWithoutAnswerTheNextIsSentOverANewConnection) {
  OtherSidecar other;
  const std::string first = ConnectionOf(other);
  ASSERT_EQ(ConnectionOf(other), first);
  other.SetSilent(true);
  std::string failed;
  client_->Send(other.address, {}, std::chrono::milliseconds(20),
                [&](const std::string& why) { failed = why; });
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (failed.empty() && Clock::now() < deadline) loop_.run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(failed, "no answer within 20 ms");
  other.SetSilent(false);
  while (other.TakeConnection().empty() && Clock::now() < deadline) {
  }
  const std::string second = ConnectionOf(other);
  EXPECT_NE(second, "");
  EXPECT_NE(second, first);
}

TEST_F(RendezvousClientTest, AMessageThatIsUnderWayIsNotHurt) {
  for (int i = 0; i < 100; ++i) {
    OtherSidecar other;
    // Its own: the answer may come when the other has ended, and then it is no failure of this.
    const auto failed = std::make_shared<std::string>();
    client_->Send(other.address, {}, std::chrono::seconds(30),
                  [failed](const std::string& why) { *failed = why; });
    client_->Retain({anchor_.address});
    const auto deadline = Clock::now() + std::chrono::seconds(30);
    while (other.TakeConnection().empty() && failed->empty() && Clock::now() < deadline) {
      loop_.run_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(*failed, "");
  }
}

}  // namespace
}  // namespace ringmaster::rendezvous
