// Workers, in threads and as processes, under a fake sidecar.
#include "collectives/elastic/training_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "collectives/communicator/stranger.h"
#include "collectives/sidecar_client/fake_sidecar.h"
#include "common/ring_key/ring_key.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::elastic {
namespace {

using engine::Kind;
using engine::Operation;
using Json = nlohmann::json;

TrainingProcess::Clock::time_point Soon() {
  return TrainingProcess::Clock::now() + std::chrono::seconds(30);
}

class WorkerTest : public testing::Test {
 protected:
  class Joiner;

  WorkerTest() { sidecar_ = std::make_unique<sidecar_client::FakeSidecar>(directory_ + "/s"); }
  ~WorkerTest() override {
    for (auto& [slot, pid] : pids_) kill(pid, SIGKILL);
    for (auto& [slot, pid] : pids_) waitpid(pid, nullptr, 0);
    sidecar_.reset();
  }

  WorkerOptions Options(int slot) {
    WorkerOptions options;
    options.socket = directory_ + "/s";
    options.job = "test";
    options.slot = slot;
    if (slot == 0) options.timeline = &timeline_;
    return options;
  }
  // Of a worker whose calls would end at once if nobody but the clock ended them.
  WorkerOptions Impatient(int slot) {
    WorkerOptions options = Options(slot);
    options.patience = std::chrono::milliseconds(50);
    return options;
  }
  // Until so much time has passed that a call of an impatient worker would have ended.
  void AwaitLongTime(int slot) {
    sidecar_->AwaitHeard(slot, "ping", sidecar_->heard(slot, "ping") + 10);
  }
  std::unique_ptr<TrainingProcess> StartOne(engine::StateRegistry* state) {
    std::unique_ptr<TrainingProcess> worker;
    std::thread starts([&] {
      const Status status = TrainingProcess::Start(Options(0), state, Soon(), &worker);
      EXPECT_TRUE(status.ok()) << status.message();
    });
    EXPECT_FALSE(sidecar_->Await(0, "enter").is_null());
    epoch_ = sidecar_->InstallView({0}, "Bootstrap", {});
    starts.join();
    return worker;
  }

  void Spawn(int slot, int steps) {
    const std::string out = directory_ + "/out" + std::to_string(slot);
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("RINGMASTER_SOCKET", (directory_ + "/s").c_str(), 1);
      setenv("RINGMASTER_SLOT", std::to_string(slot).c_str(), 1);
      setenv("RINGMASTER_JOB_UID", "test", 1);
      dup2(open(out.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600), 1);
      execl(TEST_WORKER, TEST_WORKER, std::to_string(steps).c_str(), nullptr);
      _exit(127);
    }
    pids_[slot] = pid;
  }
  int Reap(int slot) {
    int status = 0;
    waitpid(pids_[slot], &status, 0);
    pids_.erase(slot);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  std::vector<std::string> Lines(int slot) {
    std::ifstream in(directory_ + "/out" + std::to_string(slot));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  void AwaitStep(int slot, uint64_t step) {
    EXPECT_FALSE(
        sidecar_->Await(slot, "ping", [&](const Json& f) { return f["step"] >= step; }).is_null());
  }
  // Expects that every line is a step, one after the other, with the weights that so many steps
  // make.
  void CheckSteps(int slot, int first, int last) {
    const auto lines = Lines(slot);
    int expected = first;
    for (const std::string& line : lines) {
      std::istringstream words(line);
      std::string word;
      long long step = 0, epoch = 0, size = 0, sum = 0;
      words >> word >> step >> epoch >> size >> sum;
      if (word != "step") continue;
      if (expected == 0) expected = static_cast<int>(step);
      EXPECT_EQ(step, expected++) << "slot " << slot;
      EXPECT_EQ(sum, 1000 * step) << "slot " << slot << ": " << line;
    }
    EXPECT_EQ(expected, last + 1) << "slot " << slot << ": "
                                  << (lines.empty() ? "nothing" : lines.back());
  }

  timeline::Timeline timeline_;  // of the worker in slot 0
  support::TempDir temporary_;
  const std::string directory_ = temporary_.path().string();
  std::unique_ptr<sidecar_client::FakeSidecar> sidecar_;
  std::map<int, pid_t> pids_;
  uint64_t epoch_ = 0;
};

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
  sidecar_->AwaitHeard(0, "finished", 1);
  sidecar_->Restart();
  sidecar_->AwaitHeard(0, "finished", 2);
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
  sidecar_->AwaitHeard(0, "enter", before + 1);
  // The worker is left out once more while it waits, and says once more that it waits.
  const Json again = {{"epoch", epoch_ + 2}, {"parent", epoch_ + 1}, {"ranks", Json::array()}};
  sidecar_->Send(0, {{"t", "view"}, {"self", -1}, {"view", again}});
  sidecar_->AwaitHeard(0, "enter", before + 2);
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
  sidecar_->AwaitHeard(0, "enter", 1);
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
  sidecar_->AwaitHeard(0, "enter", 2);
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

// A worker of slot 0 whose user waits without a limit to be let in.
class WorkerTest::Joiner {
 public:
  explicit Joiner(WorkerTest* test) {
    test->sidecar_->Welcome(0, "joining");
    EXPECT_TRUE(state_.Register("w", &weight_, sizeof(weight_)).ok());
    EXPECT_TRUE(TrainingProcess::Start(test->Impatient(0), &state_, std::nullopt, &worker_).ok());
    user_ = std::thread([this] { status_ = worker_->Enter(std::nullopt); });
    test->sidecar_->AwaitHeard(0, "enter", 1);
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

TEST_F(WorkerTest, AJoinerWaitsForAsLongAsTheStepOfTheOthersTakes) {
  Joiner joiner(this);
  AwaitLongTime(0);
  sidecar_->Send(0, {{"t", "left"}, {"epoch", 1}, {"reason", "the end"}});
  EXPECT_EQ(joiner.Entered(), RM_ERR_LEFT);
}

TEST_F(WorkerTest, AJoinerWhoseSidecarIsGoneForGoodSaysSo) {
  sidecar_->SetFence(200);
  Joiner joiner(this);
  sidecar_->AnswerPings(false);
  EXPECT_EQ(joiner.Entered(), RM_ERR_UNAVAILABLE);
}

// A sidecar takes one that has said goodbye and hung up for lost, so the others go on without it.
TEST_F(WorkerTest, AJoinerThatIsLetInWhenItsUserHasGivenUpHangsUp) {
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
  std::thread user([&] { status = member->StepEnd(nullptr); });
  const auto here = [&](const Json& f) { return f["epoch"] == epoch_; };
  EXPECT_FALSE(sidecar_->Await(0, "boundary", here).is_null());
  sidecar_->InstallView({0, 1}, "WorkerJoined", {0});
  EXPECT_TRUE(sidecar_->AwaitHeard(1, "bye", 1));
  EXPECT_TRUE(sidecar_->AwaitGone(1));
  sidecar_->InstallView({0}, "WorkerLost", {0});
  user.join();
  EXPECT_TRUE(status.ok()) << status.message();
  status = joiner->Enter(Soon());
  EXPECT_EQ(status.code(), RM_ERR_TIMEOUT);
  EXPECT_THAT(status.message(), testing::HasSubstr("had given up waiting"));
}

TEST_F(WorkerTest, InitWaitsForAsLongAsTheSidecarDoes) {
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  Status status;
  std::thread starts(
      [&] { status = TrainingProcess::Start(Impatient(0), &state, std::nullopt, &worker); });
  sidecar_->AwaitHeard(0, "enter", 1);
  AwaitLongTime(0);
  sidecar_->Send(0, {{"t", "error"}, {"message", "slot 3 never called init"}});
  starts.join();
  EXPECT_EQ(status.message(), "slot 3 never called init");
}

TEST_F(WorkerTest, InitWithoutASidecarEndsWhenItsPatienceIsOver) {
  WorkerOptions options = Impatient(0);
  options.socket = directory_ + "/nobody";
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  const Status status = TrainingProcess::Start(options, &state, std::nullopt, &worker);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
}

TEST_F(WorkerTest, AShutdownAndTheNextInitWaitForARankThatIsLateAndSayForWhich) {
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

TEST_F(WorkerTest, AShutdownEndsWhenTheSidecarIsGone) {
  sidecar_->SetFence(200);
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

TEST_F(WorkerTest, AStandbyStandsByForAsLongAsItTakes) {
  sidecar_->Welcome(0, "standby");
  WorkerOptions options = Impatient(0);
  options.standby = true;
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  Status status;
  const auto early = TrainingProcess::Clock::now() + std::chrono::milliseconds(50);
  std::thread starts([&] { status = TrainingProcess::Start(options, &state, early, &worker); });
  sidecar_->AwaitHeard(0, "ping", 1);
  AwaitLongTime(0);
  sidecar_->Send(0, {{"t", "promoted"}, {"slot", 0}, {"incarnation", 2}});
  starts.join();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(worker->joining());
}

TEST_F(WorkerTest, AStandbyWhoseSidecarIsGoneForGoodSaysSo) {
  sidecar_->SetFence(200);
  sidecar_->Welcome(0, "standby");
  WorkerOptions options = Impatient(0);
  options.standby = true;
  engine::StateRegistry state;
  std::unique_ptr<TrainingProcess> worker;
  Status status;
  std::thread starts(
      [&] { status = TrainingProcess::Start(options, &state, std::nullopt, &worker); });
  sidecar_->AwaitHeard(0, "ping", 1);
  sidecar_->AnswerPings(false);
  starts.join();
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE) << status.message();
}

TEST_F(WorkerTest, ProcessesGoOnWhenOneIsKilledAndNoStepIsLost) {
  for (int slot : {0, 1, 2}) Spawn(slot, 60);
  for (int slot : {0, 1, 2}) ASSERT_FALSE(sidecar_->Await(slot, "enter").is_null());
  sidecar_->InstallView({0, 1, 2}, "Bootstrap", {});
  AwaitStep(1, 5);
  kill(pids_[0], SIGKILL);
  EXPECT_EQ(Reap(0), 137);
  sidecar_->AwaitGone(0);
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
  sidecar_->AwaitGone(0);
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
