#include "operator/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/cli/progress_text.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

constexpr uint64_t kFirst = (uint64_t{1} << 40) + 1;

// The answer of the sidecar of pod `self` in a view of these workers ("pod/incarnation", slot 0
// each).
class Answer {
 public:
  Answer(int self, uint64_t epoch, std::string reason, std::vector<std::pair<int, int>> members) {
    text_["job"] = {{"name", "digits"}};
    text_["pod"] = {{"name", Pod(self)}};
    text_["state"] = "Training";
    text_["epoch"] = epoch;
    Json view = {{"reason", reason}, {"pods", Json::array()}, {"ranks", Json::array()}};
    for (auto [pod, incarnation] : members) {
      view["ranks"].push_back(
          {{"pod", view["pods"].size()}, {"slot", 0}, {"incarnation", incarnation}});
      view["pods"].push_back({{"name", Pod(pod)}});
    }
    text_["view"] = view;
  }
  Answer& Step(uint64_t step) { return text_["progress"]["step"] = step, *this; }
  Answer& Value(const char* name, double v) { return text_["progress"]["values"][name] = v, *this; }
  Answer& Rebuilt(uint64_t epoch, const char* reason, int size, Json seconds, int lost = 0,
                  bool planned = false) {
    text_["rebuilds"].push_back({{"epoch", epoch},
                                 {"parent", epoch - 1},
                                 {"reason", reason},
                                 {"planned", planned},
                                 {"worldSize", size},
                                 {"seconds", seconds},
                                 {"stepsLost", lost}});
    return *this;
  }
  inspection::SidecarStatus Status() const { return *inspection::ParseSidecarStatus(text_); }
  static std::string Pod(int i) { return "digits-worker-" + std::to_string(i); }

 private:
  Json text_;
};

class ProgressTest : public testing::Test {
 protected:
  TimePoint At(int ms) { return TimePoint{} + milliseconds(ms); }
  JobProgress job_;
};

TEST_F(ProgressTest, LostWorkerIsToldOnceWithEveryPhaseOfTheSlowestMember) {
  job_.Observe(Answer(0, kFirst, "Bootstrap", {{0, 1}, {1, 1}, {2, 1}}).Step(9).Status(), At(0));
  ASSERT_THAT(job_.TakeSettled(At(500)), SizeIs(1));
  job_.NoteExit("digits-worker-2", 137);

  Answer a(0, kFirst + 1, "WorkerLost", {{0, 1}, {1, 1}});
  a.Rebuilt(kFirst + 1, "WorkerLost", 2,
            {{"detect", .001}, {"decide", .012}, {"stop", .004}, {"connect", .002}});
  job_.Observe(a.Status(), At(1000));
  EXPECT_THAT(job_.TakeSettled(At(1500)), SizeIs(0)) << "not stepping yet";

  Answer b(1, kFirst + 1, "WorkerLost", {{0, 1}, {1, 1}});
  b.Rebuilt(kFirst + 1, "WorkerLost", 2, {{"connect", .001}, {"redo", .001}, {"resume", .025}});
  job_.Observe(b.Status(), At(1500));
  auto settled = job_.TakeSettled(At(1600));
  ASSERT_THAT(settled, SizeIs(1));
  EXPECT_EQ(ChangeText(settled[0], job_),
            "view 1.2: worker digits-worker-2/0 lost (killed by signal 9); 3 -> 2; back to "
            "stepping after 41 ms (detect 1, decide 12, connect 2, redo 1, resume 25)");
  EXPECT_THAT(job_.TakeSettled(At(9000)), SizeIs(0)) << "told twice";
}

TEST_F(ProgressTest, FirstViewThatNobodyAskedInTimeForIsKnownFromTheChangeAfterIt) {
  inspection::SidecarStatus status = Answer(0, kFirst + 1, "WorkerLost", {{0, 1}, {1, 1}}).Status();
  status.rebuilds.push_back({.epoch = kFirst + 1,
                             .parent = kFirst,
                             .reason = "WorkerLost",
                             .world_size = 2,
                             .members = {"digits-worker-0", "digits-worker-1"},
                             .left = {"digits-worker-2"}});
  job_.Observe(status, At(0));
  auto settled = job_.TakeSettled(At(9000));
  ASSERT_THAT(settled, SizeIs(2));
  EXPECT_EQ(ChangeText(settled[0], job_), "view 1.1: 3 workers in 3 pods begin");
  EXPECT_THAT(ChangeText(settled[1], job_), HasSubstr("3 -> 2"));
}

TEST_F(ProgressTest, ANewerViewSettlesTheOneBeforeIt) {
  job_.Observe(Answer(0, kFirst, "Bootstrap", {{0, 1}, {1, 1}}).Status(), At(0));
  job_.Observe(Answer(0, kFirst + 1, "WorkerLost", {{0, 1}}).Status(), At(10));
  job_.Observe(Answer(0, kFirst + 2, "WorkerJoined", {{0, 1}, {1, 2}}).Status(), At(20));
  auto settled = job_.TakeSettled(At(415));
  ASSERT_THAT(settled, SizeIs(2)) << "the third is the newest and has not stepped yet";
  EXPECT_EQ(settled[1].rebuild.epoch, kFirst + 1);
}

TEST_F(ProgressTest, RestartedWorkerIsNewThoughItHasTheOldPodAndSlot) {
  job_.Observe(Answer(0, kFirst, "WorkerLost", {{0, 1}}).Status(), At(0));
  job_.Observe(Answer(0, kFirst + 1, "WorkerJoined", {{0, 1}, {1, 2}}).Status(), At(10));
  auto settled = job_.TakeSettled(At(20), true);
  ASSERT_THAT(settled, SizeIs(2));
  EXPECT_THAT(ChangeText(settled[1], job_),
              HasSubstr("worker digits-worker-1/0 restarted and joined; 1 -> 2"));
}

TEST_F(ProgressTest, StepNeverFallsWhenAPodWithTheNewestAnswerGoes) {
  job_.Observe(Answer(0, kFirst, "Bootstrap", {{0, 1}, {1, 1}}).Step(7).Status(), At(0));
  job_.Observe(Answer(1, kFirst, "Bootstrap", {{0, 1}, {1, 1}}).Step(8).Status(), At(1));
  job_.Forget("digits-worker-1");
  job_.Observe(Answer(0, kFirst, "Bootstrap", {{0, 1}, {1, 1}}).Step(7).Status(), At(2));
  EXPECT_EQ(job_.step(), 8u);
}

TEST_F(ProgressTest, AJobThatBeginsAgainIsSaidToAndCountsItsStepsAnew) {
  const uint64_t again = (uint64_t{2} << 40) + 1;
  job_.Observe(Answer(0, kFirst, "Bootstrap", {{0, 1}, {1, 1}}).Step(70).Status(), At(0));
  EXPECT_EQ(ChangeText(job_.TakeSettled(At(20), true)[0], job_),
            "view 1.1: 2 workers in 2 pods begin");
  job_.Observe(Answer(0, again, "Bootstrap", {{0, 2}}).Step(3).Status(), At(9000));
  job_.Observe(Answer(1, kFirst, "Bootstrap", {{0, 1}, {1, 1}}).Step(71).Status(), At(9001));
  EXPECT_EQ(job_.step(), 3u) << "what is heard of the earlier lineage is void";
  EXPECT_EQ(ChangeText(job_.TakeSettled(At(9999), true)[0], job_),
            "view 2.1: nobody had the state any more; 1 worker in 1 pod begin again from the "
            "checkpoint; 2 -> 1");
}

TEST_F(ProgressTest, WorkersOfOnePodCountAsOnePod) {
  const auto rebuilt = [](uint64_t epoch, const char* reason, std::vector<std::string> members,
                          std::vector<std::string> left, std::vector<std::string> joined) {
    return ViewRecord{.rebuild = {.epoch = epoch,
                                  .reason = reason,
                                  .world_size = static_cast<int>(members.size()),
                                  .members = std::move(members),
                                  .left = std::move(left),
                                  .joined = std::move(joined)}};
  };
  EXPECT_EQ(ChangeText(rebuilt(kFirst, "Bootstrap", {"a/0", "a/1"}, {}, {}), job_),
            "view 1.1: 2 workers in 1 pod begin");
  EXPECT_EQ(ChangeText(rebuilt(kFirst, "PodLost", {"b/0", "b/1"}, {"a/0", "a/1"}, {}), job_),
            "view 1.1: pod a lost");
  EXPECT_EQ(ChangeText(rebuilt(kFirst, "PodDrained", {"b/0"}, {"a/0", "a/1"}, {}), job_),
            "view 1.1: pod a left by plan");
  EXPECT_EQ(ChangeText(rebuilt(kFirst, "PodJoined", {"a/0", "a/1"}, {}, {"a/0", "a/1"}), job_),
            "view 1.1: pod a joined");
}

TEST_F(ProgressTest, AViewInWhichNobodyComesOrGoesSaysSoWhateverReasonItHas) {
  job_.Observe(Answer(0, kFirst, "Bootstrap", {{0, 1}, {1, 1}}).Step(70).Status(), At(0));
  job_.TakeSettled(At(20), true);
  Answer held = Answer(0, kFirst + 1, "Bootstrap", {{0, 1}, {1, 1}});
  held.Rebuilt(kFirst + 1, "Bootstrap", 2, Json::object(), 0, /*planned=*/true);
  job_.Observe(held.Status(), At(30));
  EXPECT_THAT(ChangeText(job_.TakeSettled(At(9999), true)[0], job_),
              StartsWith("view 1.2: nobody came or left; 2 -> 2"));
}

TEST_F(ProgressTest, StepsLostAreSummedOverViewsNotOverReporters) {
  for (int pod : {0, 1}) {
    Answer answer(pod, kFirst + 1, "PodLost", {{0, 1}, {1, 1}});
    job_.Observe(answer.Rebuilt(kFirst + 1, "PodLost", 2, Json::object(), 3).Status(), At(0));
  }
  EXPECT_EQ(job_.views().steps_lost(), 3);
}

TEST_F(ProgressTest, TotalStepsGiveABarAndAreNotShownAsAValue) {
  Answer answer(0, kFirst, "Bootstrap", {{0, 1}});
  job_.Observe(answer.Step(30).Value("total_steps", 120).Value("loss", 0.2127).Status(), At(0));
  EXPECT_EQ(Bar(job_, 8), "[##------]");
  EXPECT_EQ(ProgressText(job_), "step 30/120  loss 0.2127  1 worker  view 1.1");
}

TEST_F(ProgressTest, BarIsEmptyWithoutATotalAndFullBeyondIt) {
  job_.Observe(Answer(0, kFirst, "Bootstrap", {{0, 1}}).Step(30).Status(), At(0));
  EXPECT_EQ(Bar(job_, 8), "");
  job_.Observe(Answer(0, kFirst, "Bootstrap", {{0, 1}}).Value("total_steps", 10).Status(), At(1));
  EXPECT_EQ(Bar(job_, 4), "[####]");
}

}  // namespace
}  // namespace ringmaster::cli
