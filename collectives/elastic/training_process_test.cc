// Workers, in threads and as processes, under a fake sidecar.
#include "collectives/elastic/training_process.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "collectives/communicator/stranger.h"
#include "collectives/elastic/worker_fixture.h"
#include "common/ring_key/ring_key.h"

namespace ringmaster::elastic {
namespace {

using engine::Kind;
using engine::Operation;

TEST_F(WorkerTest, AnswersStopWhileTheUserSleeps) {
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  sidecar_->Send(0, {{"t", "stop"}, {"epoch", epoch_}});
  const Json stopped =
      sidecar_->Await(0, "stopped", [&](const Json& f) { return f["epoch"] == epoch_; });
  ASSERT_FALSE(stopped.is_null());
  EXPECT_EQ(stopped["holds"], epoch_) << "what it holds may be the last copy";
}

TEST_F(WorkerTest, TellsTheSidecarItsNewestEventsWhenItIsAsked) {
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  const float one = 1;
  float sum = 0;
  auto operation = std::make_shared<Operation>(
      engine::Request{"grad", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1.0, 1.0}, &one, &sum);
  ASSERT_TRUE(worker->Submit(operation).ok());
  ASSERT_TRUE(worker->Await(*operation, Soon()));
  sidecar_->Send(0, {{"t", "timeline"}, {"request", 5}, {"process", 2}, {"seconds", 60}});
  const Json frame = sidecar_->Await(0, "timeline");
  ASSERT_FALSE(frame.is_null());
  EXPECT_EQ(frame["request"], 5);
  EXPECT_EQ(frame["last"], true);
  const Json events = Json::parse("[0" + frame["text"].get<std::string>() + "]");
  const auto count = [&](const std::string& name) {
    return std::count_if(events.begin(), events.end(), [&](const Json& event) {
      return event.is_object() && event["name"] == name && event["pid"] == 2;
    });
  };
  EXPECT_EQ(count("ALLREDUCE"), 2) << "of the tensor, and of the operation";
  EXPECT_EQ(count("NEGOTIATE_ALLREDUCE"), 2) << "of the tensor, and of the operation";
  EXPECT_GE(count("round"), 1);
}

TEST_F(WorkerTest, TellsWithEachPingWhichRankIsWaitedForAndForHowLong) {
  engine::StateRegistry states[2];
  std::unique_ptr<TrainingProcess> workers[2];
  std::thread starts[2];
  for (int slot : {0, 1}) {
    WorkerOptions options = Options(slot);
    options.stall = {std::chrono::milliseconds(50)};
    starts[slot] = std::thread([this, slot, options, &states, &workers] {
      EXPECT_TRUE(TrainingProcess::Start(options, &states[slot], Soon(), &workers[slot]).ok());
    });
    EXPECT_FALSE(sidecar_->Await(slot, "enter").is_null());
  }
  sidecar_->InstallView({0, 1}, "Bootstrap", {});
  for (auto& thread : starts) thread.join();
  const float one = 1;
  float sums[2];
  const auto ask = [&](int slot) {
    auto operation = std::make_shared<Operation>(
        engine::Request{"x\xff", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1.0, 1.0}, &one,
        &sums[slot]);
    EXPECT_TRUE(workers[slot]->Submit(operation).ok());
    return operation;
  };
  const auto early = ask(0);
  const auto stalled = [](int least) {
    return [least](const Json& f) {
      return f.contains("stalls") && f["stalls"][0]["missing"] == Json({1}) &&
             f["stalls"][0]["waitedMs"] >= least;
    };
  };
  EXPECT_FALSE(sidecar_->Await(0, "ping", stalled(50)).is_null());
  const Json last = sidecar_->Await(0, "ping", stalled(200));
  ASSERT_FALSE(last.is_null()) << "the time goes on";
  const auto late = ask(1);
  for (const auto& operation : {early, late}) EXPECT_TRUE(operation->WaitUntil(Soon()));
  const auto over = [&](const Json& f) { return f["n"] > last["n"] && !f.contains("stalls"); };
  EXPECT_FALSE(sidecar_->Await(0, "ping", over).is_null());
}

TEST_F(WorkerTest, OfWhatAScriptReportsTheFirst64NamesAreToldWithTheirNewestValues) {
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  for (int i = 0; i < 1000; ++i) worker->Report("loss." + std::to_string(i), 1);
  worker->Report("loss.63", 2);
  const Json frame = sidecar_->Await(0, "ping", [](const Json& f) {
    return f["values"].contains("loss.63") && f["values"]["loss.63"] == 2;
  });
  ASSERT_FALSE(frame.is_null());
  EXPECT_EQ(frame["values"].size(), 64u);
}

TEST_F(WorkerTest, ReconnectsAfterTheSidecarHasStartedAgain) {
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  sidecar_->Welcome(0, "member");
  sidecar_->Restart();
  const Json hello =
      sidecar_->Await(0, "hello", [&](const Json& f) { return f["epoch"] == epoch_; });
  EXPECT_FALSE(hello.is_null());
  rm_step_info info;
  EXPECT_TRUE(worker->StepEnd(&info).ok());
  EXPECT_EQ(info.step, 1u);
  AwaitStep(0, 1);
}

TEST_F(WorkerTest, AnEndThatTheSidecarMayHaveMissedIsSaidAgainBeforeTheProcessGoes) {
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  sidecar_->Welcome(0, "member");
  sidecar_->AnswerPings(false);  // like a sidecar that reads nothing any more
  Status status;
  std::thread user([&] { status = worker->Shutdown(Soon()); });
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "finished", 1));
  sidecar_->Restart();
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "finished", 2));
  sidecar_->AnswerPings(true);
  user.join();
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST_F(WorkerTest, AShutdownIsARestUntilTheProcessEndsOrTheScriptBeginsAgain) {
  sidecar_->LetRest();
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(worker->Shutdown(Soon()).ok());
    EXPECT_EQ(sidecar_->heard(0, "resting"), round) << "before the call returns";
    EXPECT_EQ(worker->StepEnd(nullptr).code(), RM_ERR_SHUTDOWN);
    ASSERT_TRUE(worker->Wake(Soon()).ok());
    EXPECT_EQ(sidecar_->heard(0, "woken"), round);
    EXPECT_TRUE(worker->StepEnd(nullptr).ok());
  }
  ASSERT_TRUE(worker->Shutdown(Soon()).ok());
  EXPECT_EQ(sidecar_->heard(0, "finished"), 0);
  ASSERT_TRUE(worker->Finish(Soon()).ok());
  EXPECT_EQ(sidecar_->heard(0, "finished"), 1);
}

TEST_F(WorkerTest, WhenOthersEndInsteadOfBeginningAgainItIsSaid) {
  sidecar_->LetRest();
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  ASSERT_TRUE(worker->Shutdown(Soon()).ok());
  sidecar_->Send(0, {{"t", "left"}, {"epoch", epoch_}, {"reason", "the job has ended"}});
  while (worker->StepEnd(nullptr).code() == RM_ERR_SHUTDOWN) continue;  // until the frame has come
  const Status status = worker->Wake(Soon());
  EXPECT_EQ(status.code(), RM_ERR_SHUTDOWN);
  EXPECT_THAT(status.message(), testing::HasSubstr("others have ended their processes"));
}

TEST_F(WorkerTest, UnderASidecarOfAnEarlierVersionThereIsNoWayBack) {
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  ASSERT_TRUE(worker->Shutdown(Soon()).ok());
  EXPECT_EQ(sidecar_->heard(0, "resting"), 0);
  EXPECT_EQ(sidecar_->heard(0, "finished"), 1);
  const Status status = worker->Wake(Soon());
  EXPECT_EQ(status.code(), RM_ERR_SHUTDOWN);
  EXPECT_THAT(status.message(), testing::HasSubstr("of a version for which that is its end"));
}

TEST_F(WorkerTest, AFenceThatHasPassedEndsEveryCall) {
  sidecar_->SetFence(200);
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  sidecar_->AnswerPings(false);
  Status status;
  do {
    status = worker->StepEnd(nullptr);
  } while (status.ok());
  EXPECT_EQ(status.code(), RM_ERR_DROPPED);
  EXPECT_THAT(status.message(), testing::HasSubstr("has not answered for 200 ms"));
  EXPECT_FALSE(worker->joining()) << "only rm_enter is the way back";
  EXPECT_EQ(worker->StepEnd(nullptr).code(), RM_ERR_DROPPED);
}

TEST_F(WorkerTest, ADroppedWorkerSaysThatItWantsToEnterWhenItsUserDoes) {
  engine::StateRegistry state;
  float weight = 1;
  ASSERT_TRUE(state.Register("w", &weight, sizeof(weight)).ok());
  auto worker = StartOne(&state);
  sidecar_->Send(0, {{"t", "stop"}, {"epoch", epoch_}});
  const Json without = {{"epoch", epoch_ + 1}, {"parent", epoch_}, {"ranks", Json::array()}};
  sidecar_->Send(0, {{"t", "view"}, {"self", -1}, {"view", without}});
  Status status;
  do {
    status = worker->StepEnd(nullptr);
  } while (status.ok());
  EXPECT_EQ(status.code(), RM_ERR_DROPPED);
  const int before = sidecar_->heard(0, "enter");
  std::thread user([&] { status = worker->Enter(Soon()); });
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "enter", before + 1));
  // The worker is left out once more while it waits, and says once more that it waits.
  const Json again = {{"epoch", epoch_ + 2}, {"parent", epoch_ + 1}, {"ranks", Json::array()}};
  sidecar_->Send(0, {{"t", "view"}, {"self", -1}, {"view", again}});
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "enter", before + 2));
  sidecar_->Send(0, {{"t", "left"}, {"epoch", epoch_ + 2}, {"reason", "the end"}});
  user.join();
  EXPECT_EQ(status.code(), RM_ERR_LEFT);
}

// The script registers its state after init(), as scripts do.
TEST_F(WorkerTest, AWorkerWithoutWhichTheJobBeginsGoesOnAsAJoiner) {
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  Status status;
  std::thread user([&] { status = TrainingProcess::Start(Options(0), &state, Soon(), &worker); });
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "enter", 1));
  const uint64_t epoch = (uint64_t{1} << 40) + 1;
  const Json without = {{"epoch", epoch}, {"ranks", Json::array()}};
  sidecar_->Send(0, {{"t", "view"}, {"self", -1}, {"view", without}});
  user.join();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(worker->joining());
  EXPECT_EQ(sidecar_->heard(0, "enter"), 1) << "it would be one without state";

  float weight = 1;
  ASSERT_TRUE(state.Register("w", &weight, sizeof(weight)).ok());
  std::thread enters([&] { status = worker->Enter(Soon()); });
  EXPECT_TRUE(sidecar_->AwaitHeard(0, "enter", 2));
  EXPECT_TRUE(sidecar_->Await(0, "enter").value("state", true));
  sidecar_->Send(0, {{"t", "left"}, {"epoch", epoch}, {"reason", "the end"}});
  enters.join();
  EXPECT_EQ(status.code(), RM_ERR_LEFT);
}

TEST_F(WorkerTest, ADrainedWorkerIsToldAtTheBoundary) {
  engine::StateRegistry state;
  auto worker = StartOne(&state);
  sidecar_->Send(0, {{"t", "arm"}, {"epoch", epoch_}});
  Status status;
  std::thread user([&] {
    do {
      status = worker->StepEnd(nullptr);
    } while (status.ok());
  });
  EXPECT_FALSE(sidecar_->Await(0, "boundary", [&](const Json& f) { return f["epoch"] == epoch_; })
                   .is_null());
  sidecar_->Send(0, {{"t", "left"}, {"epoch", epoch_ + 1}, {"reason", "drained"}});
  user.join();
  EXPECT_EQ(status.code(), RM_ERR_LEFT);
}

TEST_F(WorkerTest, ASidecarThatGivesUpFailsInitWithItsWords) {
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  Status status;
  std::thread starts([&] { status = TrainingProcess::Start(Options(0), &state, Soon(), &worker); });
  sidecar_->Await(0, "enter");
  sidecar_->Send(0, {{"t", "error"}, {"message", "slot 3 never called init"}});
  starts.join();
  EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
  EXPECT_EQ(status.message(), "slot 3 never called init");
}

TEST_F(WorkerTest, WithoutASidecarInitSaysWhatItCouldNotReach) {
  WorkerOptions options = Options(0);
  options.socket = directory_ + "/nobody";
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  const Status status = TrainingProcess::Start(
      options, &state, TrainingProcess::Clock::now() + std::chrono::milliseconds(100), &worker);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_THAT(status.message(), testing::HasSubstr(options.socket));
}

TEST_F(WorkerTest, ProcessesGoOnWhenOneIsKilledAndNoStepIsLost) {
  for (int slot : {0, 1, 2}) Spawn(slot, 60);
  for (int slot : {0, 1, 2}) ASSERT_FALSE(sidecar_->Await(slot, "enter").is_null());
  sidecar_->InstallView({0, 1, 2}, "Bootstrap", {});
  AwaitStep(1, 5);
  kill(pids_[0], SIGKILL);
  EXPECT_EQ(Reap(0), 137);
  EXPECT_TRUE(sidecar_->AwaitGone(0));
  const uint64_t epoch = sidecar_->InstallView({1, 2}, "WorkerLost", {1, 2});
  for (int slot : {1, 2}) {
    EXPECT_EQ(Reap(slot), 0);
    CheckSteps(slot, 1, 60);
    EXPECT_FALSE(
        sidecar_->Await(slot, "rebuilt", [&](const Json& f) { return f["epoch"] == epoch; })
            .is_null());
    EXPECT_FALSE(
        sidecar_->Await(slot, "finished", [&](const Json& f) { return f["epoch"] == epoch; })
            .is_null());
  }
}

TEST_F(WorkerTest, AStrangerWithTheRightJobAndEpochGetsNowhereAndTheJobTrainsOn) {
  sidecar_->SetRingKey(ring_key::Encode(ring_key::MakeRandom()));
  for (int slot : {0, 1, 2}) Spawn(slot, 60);
  std::vector<PeerEndpoint> peers(3);
  for (int slot : {0, 1, 2}) {
    ASSERT_FALSE(sidecar_->Await(slot, "enter").is_null());
    peers[static_cast<size_t>(slot)].tcp = sidecar_->Await(slot, "hello")["tcp"];
  }
  const uint64_t first = uint64_t{1} << 40 | 1;
  communicator::Stranger stranger(peers, "test", first);
  stranger.AwaitCalls(5);
  EXPECT_EQ(sidecar_->InstallView({0, 1, 2}, "Bootstrap", {}), first);
  AwaitStep(1, 5);
  kill(pids_[0], SIGKILL);
  EXPECT_EQ(Reap(0), 137);
  EXPECT_TRUE(sidecar_->AwaitGone(0));
  sidecar_->InstallView({1, 2}, "WorkerLost", {1, 2});
  for (int slot : {1, 2}) {
    EXPECT_EQ(Reap(slot), 0);
    CheckSteps(slot, 1, 60);
  }
}

TEST_F(WorkerTest, AKeyThatIsNoneFailsInit) {
  sidecar_->SetRingKey("nonsense");
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  const Status status = TrainingProcess::Start(Options(0), &state, Soon(), &worker);
  EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
  EXPECT_EQ(status.message(), "the sidecar's ringKey is no key");
}

TEST_F(WorkerTest, AProcessThatJoinsAtTheBoundaryGoesOnWithTheSameState) {
  for (int slot : {0, 1}) Spawn(slot, 80);
  for (int slot : {0, 1}) ASSERT_FALSE(sidecar_->Await(slot, "enter").is_null());
  const uint64_t epoch = sidecar_->InstallView({0, 1}, "Bootstrap", {});
  sidecar_->Welcome(2, "joining");
  Spawn(2, 80);
  ASSERT_FALSE(sidecar_->Await(2, "enter").is_null());
  for (int slot : {0, 1}) sidecar_->Send(slot, {{"t", "arm"}, {"epoch", epoch}});
  const auto here = [&](const Json& f) { return f["epoch"] == epoch; };
  for (int slot : {0, 1}) ASSERT_FALSE(sidecar_->Await(slot, "boundary", here).is_null());
  const uint64_t joined = sidecar_->InstallView({0, 1, 2}, "WorkerJoined", {0, 1});
  EXPECT_FALSE(
      sidecar_->Await(2, "ping", [&](const Json& f) { return f["holds"] == joined; }).is_null());
  for (int slot : {0, 1, 2}) EXPECT_EQ(Reap(slot), 0) << testing::PrintToString(Lines(slot));
  CheckSteps(0, 1, 80);
  CheckSteps(1, 1, 80);
  CheckSteps(2, 0, 80);  // from whichever step it has joined at
}

}  // namespace
}  // namespace ringmaster::elastic
