// What an operator hears of a sidecar, whenever it comes to hear of it: the operator may be away,
// and another one may follow.
#include "sidecar/rendezvous/operator_stream.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "operator.grpc.pb.h"
#include "sidecar/rendezvous/calls_in_flight.h"
#include "sidecar/rendezvous/operator_client.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::rendezvous {
namespace {

using ::testing::ElementsAre;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

// A report in a few words.
std::string Describe(const v1::SidecarReport& report) {
  switch (report.kind_case()) {
    case v1::SidecarReport::kRegistration: {
      const v1::Registration& registration = report.registration();
      return "pod " + registration.pod_uid() + " epoch " + std::to_string(registration.epoch()) +
             " boot " + registration.boot_id() + " http " + registration.http_address();
    }
    case v1::SidecarReport::kReadiness:
      return "missing " + std::to_string(report.readiness().missing_slots_size());
    case v1::SidecarReport::kView:
      return "view " + std::to_string(report.view().epoch());
    case v1::SidecarReport::kWorkerExit: {
      const v1::WorkerExit& exit = report.worker_exit();
      return "exit " + std::to_string(exit.incarnation()) + " signal " +
             std::to_string(exit.signal()) + (exit.restarting() ? " restarting" : "") +
             (exit.by_us() ? " by us" : "");
    }
    case v1::SidecarReport::kEarlierExits: {
      std::string words = "earlier exits";
      for (const v1::WorkerExit& exit : report.earlier_exits().exits())
        words += " " + std::to_string(exit.incarnation());
      return words;
    }
    case v1::SidecarReport::kFinished:
      return "finished " + std::to_string(report.finished().epoch());
    case v1::SidecarReport::kHealth:
      return "health " + std::to_string(report.health().unable_ms());
    case v1::SidecarReport::kRecovery:
      return "recovery " + report.recovery().report();
    default:
      return "nothing";
  }
}

// Accepts every sidecar, and keeps what it hears.
class Operator final : public v1::OperatorLink::Service {
 public:
  explicit Operator(const std::string& target) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Operator() override { server_->Shutdown(std::chrono::system_clock::now()); }
  Words Heard() const {
    const sync::MutexLock lock(&mu_);
    return heard_;
  }

 private:
  grpc::Status Attend(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::OperatorNotice, v1::SidecarReport>* stream) override {
    v1::OperatorNotice accepted;
    accepted.mutable_accepted();
    stream->Write(accepted);
    v1::SidecarReport report;
    while (stream->Read(&report)) {
      const sync::MutexLock lock(&mu_);
      heard_.push_back(Describe(report));
    }
    return grpc::Status::OK;
  }

  mutable sync::Mutex mu_;
  Words heard_ GUARDED_BY(mu_);
  std::unique_ptr<grpc::Server> server_;
};

class OperatorStreamTest : public testing::Test {
 protected:
  OperatorStreamTest() {
    target_ = "unix:" + (dir_ / "operator.sock").string();
    OperatorCallbacks callbacks;
    callbacks.on_connection = [this](bool connected) { connections_.push_back(connected); };
    callbacks.on_accepted = [] {};
    job::Registration registration;
    registration.pod_uid = "a";
    registration.boot_id = "b";
    registration.http_address = "h:1";
    client_ = OperatorClient::Create(&loop_, target_, "", registration, callbacks);
  }
  ~OperatorStreamTest() override {
    client_->Stop();
    operator_.reset();
  }
  static membership::ViewPtr View(uint64_t epoch) {
    membership::View view;
    view.epoch = epoch;
    return std::make_shared<const membership::View>(std::move(view));
  }
  static std::string Registered(int epoch) {
    return "pod a epoch " + std::to_string(epoch) + " boot b http h:1";
  }
  bool Until(const std::function<bool()>& so) {
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (!so() && Clock::now() < deadline) loop_.run_for(std::chrono::milliseconds(5));
    return so();
  }
  // What it has heard by the time that it hears this, which is told last.
  Words HeardUntil(const std::string& last) {
    EXPECT_TRUE(Until([&] {
      const Words heard = operator_->Heard();
      return !heard.empty() && heard.back() == last;
    })) << last;
    return operator_->Heard();
  }
  void StartOperator() {
    operator_ = std::make_unique<Operator>(target_);
    ASSERT_TRUE(Until([&] { return !connections_.empty() && connections_.back(); }));
  }
  // Its end is known to gRPC's threads; the client's loop has not run since.
  void StopOperatorUnseen() {
    operator_.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  void StopOperator() {
    operator_.reset();
    ASSERT_TRUE(Until([&] { return !connections_.back(); }));
  }
  void Exit(std::uint64_t incarnation, bool by_us = false) {
    client_->ReportWorkerExit(
        {.restarting = true, .by_us = by_us, .incarnation = incarnation, .signal = 9});
  }

  asio::io_context loop_;
  const asio::executor_work_guard<asio::io_context::executor_type> busy_{loop_.get_executor()};
  support::TempDir temporary_;
  const std::filesystem::path dir_ = temporary_.path();
  std::string target_;
  std::vector<bool> connections_;
  std::unique_ptr<Operator> operator_;
  std::unique_ptr<OperatorClient> client_;
};

TEST_F(OperatorStreamTest, WhatHappenedWhileNobodyListenedIsToldOnceAndInOrder) {
  ASSERT_NO_FATAL_FAILURE(StartOperator());
  client_->SetReadiness({.ready = false, .missing_slots = {1, 2}});
  client_->ReportView(View(0), "", 0);
  client_->ReportView(View(1), "", 0);
  client_->ReportHealth(false, std::chrono::milliseconds(7));
  client_->ReportRecovery("r");
  Exit(1);
  EXPECT_THAT(HeardUntil("exit 1 signal 9 restarting"),
              ElementsAre(Registered(0), "missing 2", "view 0", "view 1", "health 7", "recovery r",
                          "exit 1 signal 9 restarting"));
  ASSERT_NO_FATAL_FAILURE(StopOperator());
  client_->SetEpoch(4);
  client_->ReportView(View(2), "", 0);
  client_->ReportView(View(3), "", 0);
  client_->ReportView(View(4), "", 0);
  Exit(2);
  Exit(3, /*by_us=*/true);
  client_->ReportFinished(4);
  ASSERT_NO_FATAL_FAILURE(StartOperator());
  EXPECT_THAT(HeardUntil("exit 3 signal 9 restarting by us"),
              ElementsAre(Registered(4), "earlier exits 1", "view 1", "view 2", "view 3",
                          "missing 2", "view 4", "finished 4", "exit 2 signal 9 restarting",
                          "exit 3 signal 9 restarting by us"));
  ASSERT_NO_FATAL_FAILURE(StopOperator());
  ASSERT_NO_FATAL_FAILURE(StartOperator());
  client_->ReportFinished(5);
  EXPECT_THAT(HeardUntil("finished 5"),
              ElementsAre(Registered(4), "earlier exits 1 2 3", "missing 2", "view 4", "finished 4",
                          "finished 5"))
      << "what the one before has heard of is over, but for exits, which it may not have counted";
  EXPECT_THAT(connections_, ElementsAre(true, false, true, false, true));
}

TEST_F(OperatorStreamTest, OfManyViewsThatNobodyHeardOfTheLatestAreTold) {
  ASSERT_NO_FATAL_FAILURE(StartOperator());
  ASSERT_NO_FATAL_FAILURE(StopOperator());
  for (int view = 1; view <= 100; ++view) client_->ReportView(View(view), "", 0);
  ASSERT_NO_FATAL_FAILURE(StartOperator());
  const Words heard = HeardUntil("view 100");
  ASSERT_EQ(heard.size(), 1u + 64 + 1);
  EXPECT_EQ(heard[1], "view 36");
}

TEST_F(OperatorStreamTest, WhatWasToldLastArrivesBeforeItStops) {
  ASSERT_NO_FATAL_FAILURE(StartOperator());
  client_->ReportFinished(1);
  client_->ReportFinished(2);
  client_->Stop();
  EXPECT_THAT(operator_->Heard(), ElementsAre(Registered(0), "finished 1", "finished 2"));
}

// Counts the contexts of calls that exist.
class Contexts final : public grpc::ClientContext::GlobalCallbacks {
 public:
  void DefaultConstructor(grpc::ClientContext*) override { ++exist; }
  void Destructor(grpc::ClientContext*) override { --exist; }
  std::atomic<int> exist{0};
};

// gRPC takes such callbacks once in a process, and for good.
Contexts& CountContexts() {
  auto* const contexts = new Contexts;
  grpc::ClientContext::SetGlobalCallbacks(contexts);
  return *contexts;
}

TEST(OperatorStreamEndTest, ItHoldsNoChannelOnceItIsDone) {
  static Contexts& contexts = CountContexts();
  ASSERT_EQ(contexts.exist, 0);
  const support::TempDir dir;
  const std::string target = "unix:" + (dir.path() / "operator.sock").string();
  Operator service(target);
  const auto stub =
      v1::OperatorLink::NewStub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  const auto stream = OperatorStream::Open(
      stub.get(), [](const v1::OperatorNotice&) {}, [](const auto&, const std::string&) {});
  EXPECT_EQ(contexts.exist, 1);
  stream->HalfClose();
  ASSERT_TRUE(stream->WaitDone(std::chrono::seconds(60)));
  EXPECT_EQ(contexts.exist, 0);
}

// Its end takes time, unless somebody has seen meanwhile that all calls have ended.
struct SlowToGo {
  ~SlowToGo() {
    begun->set_value();
    seen.wait_for(std::chrono::milliseconds(200));
    *gone = true;
  }
  std::promise<void>* begun;
  std::future<void> seen;
  std::atomic<bool>* gone;
  grpc::ClientContext context;
};

TEST(CallsInFlightTest, ACallIsGoneWithItsChannelBeforeItHasEnded) {
  CallsInFlight calls;
  std::promise<void> begun, seen;
  std::atomic<bool> gone = false;
  std::shared_ptr<SlowToGo> call(new SlowToGo{&begun, seen.get_future(), &gone});
  ASSERT_TRUE(calls.Begin(&call->context));
  std::jthread ends([&] { calls.End(std::move(call)); });
  begun.get_future().wait();
  calls.StopAndWait();
  EXPECT_TRUE(gone);
  seen.set_value();
  grpc::ClientContext late;
  EXPECT_FALSE(calls.Begin(&late));
}

TEST_F(OperatorStreamTest, AnExitThatIsToldWhileTheStreamEndsReachesTheNextOperator) {
  StartOperator();
  StopOperatorUnseen();
  client_->ReportWorkerExit({.slot = 0, .exit_code = 137, .incarnation = 5, .signal = 9});
  StartOperator();
  HeardUntil("exit 5 signal 9");
}

}  // namespace
}  // namespace ringmaster::rendezvous
