// A worker waits for as long as what it waits for takes, and no longer than its sidecar answers.
#include <gmock/gmock.h>

#include "collectives/elastic/worker_fixture.h"

namespace ringmaster::elastic {
namespace {

class PatienceTest : public WorkerTest {
 protected:
  class Joiner;
  class Fenced;

  // Of a worker whose calls would end at once if nobody but the clock ended them.
  WorkerOptions Impatient(int slot) {
    WorkerOptions options = Options(slot);
    options.patience = std::chrono::milliseconds(50);
    return options;
  }
  // Until so much time has passed that a call of an impatient worker would have ended.
  void AwaitLongTime(int slot) {
    EXPECT_TRUE(sidecar_->AwaitHeard(slot, "ping", sidecar_->heard(slot, "ping") + 10));
  }
};

// A worker of slot 0 whose user waits without a limit to be let in.
class PatienceTest::Joiner {
 public:
  explicit Joiner(PatienceTest* test,
                  std::chrono::milliseconds patience = std::chrono::milliseconds(50)) {
    WorkerOptions options = test->Options(0);
    options.patience = patience;
    test->sidecar_->Welcome(0, "joining");
    EXPECT_TRUE(state_.Register("w", &weight_, sizeof(weight_)).ok());
    EXPECT_TRUE(TrainingProcess::Start(options, &state_, std::nullopt, &worker_).ok());
    user_ = std::thread([this] { status_ = worker_->Enter(std::nullopt); });
    EXPECT_TRUE(test->sidecar_->AwaitHeard(0, "enter", 1));
  }
  // How the wait has ended, when it has.
  rm_status Entered() {
    user_.join();
    return status_.code();
  }

 private:
  float weight_ = 1;
  engine::StateRegistry state_;
  std::unique_ptr<TrainingProcess> worker_;
  Status status_;
  std::thread user_;
};

TEST_F(PatienceTest, AJoinerWaitsForAsLongAsTheStepOfTheOthersTakes) {
  Joiner joiner(this);
  AwaitLongTime(0);
  sidecar_->Send(0, {{"t", "left"}, {"epoch", 1}, {"reason", "the end"}});
  EXPECT_EQ(joiner.Entered(), RM_ERR_LEFT);
}

TEST_F(PatienceTest, AJoinerWhoseSidecarIsGoneForGoodSaysSo) {
  sidecar_->SetFence(200);
  Joiner joiner(this);
  sidecar_->AnswerPings(false);
  EXPECT_EQ(joiner.Entered(), RM_ERR_UNAVAILABLE);
}

// The sidecar answers again on the same connection, so it is not gone when the patience with its
// silence would be over.
TEST_F(PatienceTest, AJoinerWhoseSidecarIsHeardAgainGoesOnWaiting) {
  sidecar_->SetFence(200);
  Joiner joiner(this, std::chrono::seconds(2));
  sidecar_->AnswerPings(false);
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "enter", 2)) << "asked again when it was fenced";
  sidecar_->AnswerPings(true);
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "ping", sidecar_->heard(0, "ping") + 200));
  sidecar_->Send(0, {{"t", "left"}, {"epoch", 1}, {"reason", "the end"}});
  EXPECT_EQ(joiner.Entered(), RM_ERR_LEFT);
}

// A sidecar takes one that has said goodbye and hung up for lost, so the others go on without it.
TEST_F(PatienceTest, AJoinerThatIsLetInWhenItsUserHasGivenUpHangsUp) {
  float weight = 1;
  engine::StateRegistry states[2];
  for (auto& state : states) ASSERT_TRUE(state.Register("w", &weight, sizeof(weight)).ok());
  auto member = StartOne(&states[0]);
  sidecar_->Welcome(1, "joining");
  std::unique_ptr<TrainingProcess> joiner;
  ASSERT_TRUE(TrainingProcess::Start(Impatient(1), &states[1], std::nullopt, &joiner).ok());
  EXPECT_EQ(joiner->Enter(TrainingProcess::Clock::now()).code(), RM_ERR_TIMEOUT);
  sidecar_->Send(0, {{"t", "arm"}, {"epoch", epoch_}});
  Status status;
  std::thread user([&] {  // the order to stop at a boundary may reach it after several steps
    rm_step_info info{};
    do {
      status = member->StepEnd(&info);
    } while (status.ok() && !info.view_changed);
  });
  const auto here = [&](const Json& f) { return f["epoch"] == epoch_; };
  EXPECT_FALSE(sidecar_->Await(0, "boundary", here).is_null());
  sidecar_->InstallView({0, 1}, "WorkerJoined", {0});
  EXPECT_TRUE(sidecar_->AwaitHeard(1, "bye", 1));
  EXPECT_TRUE(sidecar_->AwaitGone(1));
  sidecar_->InstallView({0}, "WorkerLost", {0});
  user.join();
  EXPECT_TRUE(status.ok()) << status.message();
  status = joiner->Enter(Soon());
  EXPECT_EQ(status.code(), RM_ERR_DROPPED);
  EXPECT_THAT(status.message(), testing::HasSubstr("had given up waiting"));
}

// A worker that was fenced, and whose user waits to be let in again.
class PatienceTest::Fenced {
 public:
  Fenced(PatienceTest* test, std::chrono::milliseconds patience) : test_(test) {
    EXPECT_TRUE(state_.Register("w", &weight_, sizeof(weight_)).ok());
    WorkerOptions options = test->Options(0);
    options.patience = patience;
    test->sidecar_->SetFence(500);
    worker_ = test->StartOne(&state_, options);
    test->sidecar_->AnswerPings(false);
    Status status;
    do {
      status = worker_->StepEnd(nullptr);
    } while (status.ok());
    EXPECT_EQ(status.code(), RM_ERR_DROPPED);
    user_ = std::thread([this] { status_ = worker_->Enter(std::nullopt); });
    EXPECT_TRUE(test->sidecar_->AwaitHeard(0, "enter", 2));
  }
  // The sidecar answers nothing for so many more pings, and then all.
  void HearAfter(int pings) {
    EXPECT_TRUE(test_->sidecar_->AwaitHeard(0, "ping", test_->sidecar_->heard(0, "ping") + pings));
    test_->sidecar_->AnswerPings(true);
  }
  // How the wait has ended, when it has.
  Status Entered() {
    user_.join();
    return status_;
  }

 private:
  PatienceTest* const test_;
  float weight_ = 1;
  engine::StateRegistry state_;
  std::unique_ptr<TrainingProcess> worker_;
  Status status_;
  std::thread user_;
};

// The sidecar is silent for ten times as long as it may take to let the worker in afterwards. What
// the worker held counts for nothing, and here nobody else has the state.
TEST_F(PatienceTest, AFencedWorkerIsLetInHoweverLongItsSidecarWasAway) {
  Fenced worker(this, std::chrono::seconds(4));
  worker.HearAfter(100);
  sidecar_->InstallView({0}, "WorkerJoined", {});
  const Status status = worker.Entered();
  EXPECT_THAT(status.message(), testing::HasSubstr("no worker of the view has the job's state"));
}

TEST_F(PatienceTest, AFencedWorkerThatTheSidecarDoesNotLetInSaysThatItMustStartAgain) {
  Fenced worker(this, std::chrono::seconds(4));
  worker.HearAfter(1);
  const Status status = worker.Entered();
  EXPECT_EQ(status.code(), RM_ERR_DROPPED);
  EXPECT_THAT(status.message(), testing::HasSubstr("not let in again"));
}

// As by a sidecar that has started again, and knows of no later view.
TEST_F(PatienceTest, AFencedWorkerThatIsSentTheViewItHasLeftSaysThatItMustStartAgain) {
  Fenced worker(this, std::chrono::seconds(4));
  sidecar_->Send(0, {{"t", "view"},
                     {"self", 0},
                     {"view",
                      {{"epoch", epoch_},
                       {"parent", 0},
                       {"reason", "Bootstrap"},
                       {"train", true},
                       {"planned", false},
                       {"pods", {{{"uid", "pod-0"}}}},
                       {"ranks", {{{"pod", 0}, {"slot", 0}, {"tcp", "127.0.0.1:1"}}}}}}});
  worker.HearAfter(1);
  EXPECT_EQ(worker.Entered().code(), RM_ERR_DROPPED);
}

TEST_F(PatienceTest, InitWaitsForAsLongAsTheSidecarDoes) {
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  Status status;
  std::thread starts(
      [&] { status = TrainingProcess::Start(Impatient(0), &state, std::nullopt, &worker); });
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "enter", 1));
  AwaitLongTime(0);
  sidecar_->Send(0, {{"t", "error"}, {"message", "slot 3 never called init"}});
  starts.join();
  EXPECT_EQ(status.message(), "slot 3 never called init");
}

TEST_F(PatienceTest, InitWithoutASidecarEndsWhenItsPatienceIsOver) {
  WorkerOptions options = Impatient(0);
  options.socket = directory_ + "/nobody";
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  const Status status = TrainingProcess::Start(options, &state, std::nullopt, &worker);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
}

TEST_F(PatienceTest, AShutdownAndTheNextInitWaitForARankThatIsLateAndSayForWhich) {
  sidecar_->LetRest();
  engine::StateRegistry states[2];
  std::unique_ptr<TrainingProcess> workers[2];
  std::thread starts[2];
  for (int slot : {0, 1}) {
    WorkerOptions options = Impatient(slot);
    options.stall = {std::chrono::milliseconds(300)};
    starts[slot] = std::thread([slot, options, &states, &workers] {
      EXPECT_TRUE(
          TrainingProcess::Start(options, &states[slot], std::nullopt, &workers[slot]).ok());
    });
    EXPECT_FALSE(sidecar_->Await(slot, "enter").is_null());
  }
  sidecar_->InstallView({0, 1}, "Bootstrap", {});
  for (auto& thread : starts) thread.join();
  using Call = Status (TrainingProcess::*)(TrainingProcess::Limit);
  for (const Call call : {&TrainingProcess::Shutdown, &TrainingProcess::Wake}) {
    Status early;
    std::thread user([&] { early = (*workers[0].*call)(std::nullopt); });
    if (call == &TrainingProcess::Shutdown) {
      const auto told = [](const Json& f) {
        return f.contains("stalls") && f["stalls"][0]["tensor"] == "shutdown" &&
               f["stalls"][0]["missing"] == Json({1});
      };
      EXPECT_FALSE(sidecar_->Await(0, "ping", told).is_null());
    }
    AwaitLongTime(0);
    EXPECT_TRUE((*workers[1].*call)(std::nullopt).ok());
    user.join();
    EXPECT_TRUE(early.ok()) << early.message();
  }
}

TEST_F(PatienceTest, AShutdownEndsWhenTheSidecarIsGone) {
  sidecar_->SetFence(2000);  // not so soon that a busy machine fences a worker that is to start
  engine::StateRegistry states[2];
  std::unique_ptr<TrainingProcess> workers[2];
  std::thread starts[2];
  for (int slot : {0, 1}) {
    starts[slot] = std::thread([this, slot, &states, &workers] {
      EXPECT_TRUE(
          TrainingProcess::Start(Options(slot), &states[slot], std::nullopt, &workers[slot]).ok());
    });
    EXPECT_FALSE(sidecar_->Await(slot, "enter").is_null());
  }
  sidecar_->InstallView({0, 1}, "Bootstrap", {});
  for (auto& thread : starts) thread.join();
  sidecar_->AnswerPings(false);
  const Status status = workers[0]->Shutdown(std::nullopt);
  EXPECT_EQ(status.code(), RM_ERR_DROPPED) << status.message();
}

TEST_F(PatienceTest, AStandbyStandsByForAsLongAsItTakes) {
  sidecar_->Welcome(0, "standby");
  WorkerOptions options = Impatient(0);
  options.standby = true;
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  Status status;
  // The sidecar has to answer within it, also on a machine with much else to do.
  const auto limit = TrainingProcess::Clock::now() + std::chrono::seconds(3);
  std::thread starts([&] { status = TrainingProcess::Start(options, &state, limit, &worker); });
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "ping", 1));
  std::this_thread::sleep_until(limit);
  AwaitLongTime(0);
  sidecar_->Send(0, {{"t", "promoted"}, {"slot", 0}, {"incarnation", 2}});
  starts.join();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(worker->joining());
}

TEST_F(PatienceTest, AStandbyWhoseSidecarIsGoneForGoodSaysSo) {
  sidecar_->SetFence(200);
  sidecar_->Welcome(0, "standby");
  WorkerOptions options = Impatient(0);
  options.standby = true;
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  Status status;
  std::thread starts(
      [&] { status = TrainingProcess::Start(options, &state, std::nullopt, &worker); });
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "ping", 1));
  sidecar_->AnswerPings(false);
  starts.join();
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE) << status.message();
}

}  // namespace
}  // namespace ringmaster::elastic
