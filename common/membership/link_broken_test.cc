// The ring breaks though nobody has died: the same members get a new view, and of two pods whose
// link breaks again and again one is left out for a while.
#include <gtest/gtest.h>

#include "common/membership/test_job.h"

namespace ringmaster::membership {
namespace {

using std::chrono::seconds;

TEST(LinkBrokenTest, TheSameMembersGetANewViewWhoeverSaysSo) {
  for (const char* who : {"p0", "p1", "p2"}) {
    Job job(3, 2);
    const View before = job.ViewOf("p0");
    job.Give(who, LinkBroken{before.epoch, {}});
    for (int i = 0; i < 3; ++i) {
      const View& view = job.ViewOf(Job::Uid(i));
      EXPECT_EQ(view.epoch, before.epoch + 1) << who;
      EXPECT_EQ(view.reason, Reason::kLinkBroken) << who;
      EXPECT_EQ(view.pods, before.pods);
      EXPECT_EQ(view.ranks, before.ranks);
      EXPECT_FALSE(view.planned) << "a step was interrupted";
    }
  }
}

TEST(LinkBrokenTest, AnOlderViewAndAJobThatEndsNeedNothing) {
  Job job(3);
  job.Give("p0", LinkBroken{MakeEpoch(1, 1), {}});
  job.Give("p0", LinkBroken{MakeEpoch(1, 1), {}});
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 2));
  job.Give("p0", Finishing{MakeEpoch(1, 2)});
  job.Give("p0", LinkBroken{MakeEpoch(1, 2), {}});
  job.Pass(milliseconds(600));
  EXPECT_EQ(job.ViewOf("p0").epoch, MakeEpoch(1, 2));
}

TEST(LinkBrokenTest, ADeathThatIsKnownIsTheReason) {
  Job job(3, 2);
  job.stops_ = false;
  job.Give("p0", LinkBroken{MakeEpoch(1, 1), {}});
  job.KillWorker("p1", 0);
  job.stops_ = true;
  job.Give("p0", WorkersStopped{MakeEpoch(1, 1)});
  job.Give("p1", WorkersStopped{MakeEpoch(1, 1)});
  job.Give("p2", WorkersStopped{MakeEpoch(1, 1)});
  EXPECT_EQ(job.ViewOf("p0").reason, Reason::kWorkerLost);
  EXPECT_EQ(job.ViewOf("p0").ranks.size(), 5u);
}

struct Ends {
  const char* name;
  const char* accuser;
  const char* accused;
  const char* left_out;
};

class LeftOut : public ::testing::TestWithParam<Ends> {};

TEST_P(LeftOut, OneOfThePairAndItComesBackLater) {
  const Ends& ends = GetParam();
  Job job(4);
  job.Give(ends.accuser, LinkBroken{MakeEpoch(1, 1), {ends.accused}});
  job.Pass(milliseconds(600));
  Uids others{"p0", "p1", "p2", "p3"};
  std::erase(others, ends.left_out);
  EXPECT_EQ(job.Pods("p0" == std::string(ends.left_out) ? "p1" : "p0"), others);
  EXPECT_EQ(job.ViewOf(others[0]).reason, Reason::kLinkBroken);
  job.Pass(milliseconds(8900));
  EXPECT_EQ(job.Pods(others[0]), others) << "it rests";
  job.Pass(milliseconds(1500));
  EXPECT_EQ(job.Pods(others[0]).size(), 4u);
  EXPECT_EQ(job.ViewOf(others[0]).reason, Reason::kRejoin);
}

// The coordinator decides which pod is left out, and never leaves itself out.
INSTANTIATE_TEST_SUITE_P(Pairs, LeftOut,
                         ::testing::Values(Ends{"TheAccused", "p1", "p2", "p2"},
                                           Ends{"TheAccusedOfTheCoordinator", "p0", "p2", "p2"},
                                           Ends{"TheAccuserOfTheCoordinator", "p2", "p0", "p2"}),
                         [](const auto& info) { return info.param.name; });

TEST(LinkBrokenTest, APodThatIsLeftOutAgainRestsLonger) {
  Job job(3);
  milliseconds rest(10000);
  for (int i = 0; i < 8; ++i) {
    job.Give("p0", LinkBroken{job.ViewOf("p0").epoch, {"p2"}});
    job.Pass(rest - milliseconds(100));
    EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1"})) << i;
    job.Pass(milliseconds(600));
    EXPECT_EQ(job.Pods("p0").size(), 3u) << i;
    rest = std::min(2 * rest, milliseconds(320000));
  }
  job.Pass(seconds(1300));
  job.Give("p0", LinkBroken{job.ViewOf("p0").epoch, {"p2"}});
  job.Pass(milliseconds(10500));
  EXPECT_EQ(job.Pods("p0").size(), 3u) << "that was long ago";
}

TEST(LinkBrokenTest, NobodyIsLeftOutWhereTooFewWouldBeLeft) {
  Job job(3, 1, 3);
  for (std::uint64_t number = 1; number < 6; ++number) {
    job.Give("p1", LinkBroken{MakeEpoch(1, number), {"p2"}});
    const View& view = job.ViewOf("p0");
    EXPECT_EQ(view.epoch, MakeEpoch(1, number + 1));
    EXPECT_EQ(view.pods.size(), 3u);
    EXPECT_EQ(view.reason, Reason::kLinkBroken);
    EXPECT_TRUE(view.train);
  }
  job.Give("p0", TargetChanged{{.least = 2}, 3});
  job.Give("p1", LinkBroken{MakeEpoch(1, 6), {"p2"}});
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1"})) << "the job may be smaller by now";
}

TEST(LinkBrokenTest, WhoIsSilentIsLeftOutThoughTooFewAreLeft) {
  Job job(3, 1, 3);
  job.stops_ = false;
  job.Give("p1", LinkBroken{MakeEpoch(1, 1), {"p0"}});
  job.Give("p0", PodSuspected{"p2", "silent"});
  job.silent_ = {"p2"};
  job.stops_ = true;
  for (const char* who : {"p0", "p1"}) job.Give(who, WorkersStopped{MakeEpoch(1, 1)});
  EXPECT_EQ(job.Pods("p0"), (Uids{"p0", "p1"})) << "the accused of a link stays";
  EXPECT_EQ(job.ViewOf("p0").reason, Reason::kPodLost);
  EXPECT_FALSE(job.ViewOf("p0").train);
}

TEST(LinkBrokenTest, OfTwoPodsOneGoesOn) {
  Job job(2);
  job.Give("p1", LinkBroken{MakeEpoch(1, 1), {"p0"}});
  EXPECT_EQ(job.Pods("p0"), Uids{"p0"});
  EXPECT_EQ(job.ViewOf("p1").epoch, MakeEpoch(1, 2));
}

// The last worker with the state dies. A pod that did not know that would say that it is able to
// train.
TEST(LinkBrokenTest, ThatTheStateIsLostIsKnownToAll) {
  Job job(2, 2);
  job.operations_ = false;
  job.KillWorker("p0", 0);
  job.KillWorker("p1", 0);
  job.KillWorker("p1", 1);
  ASSERT_EQ(job.ViewOf("p0").ranks.size(), 1u);
  job.boundary_ = false;
  job.StartWorker("p0", 0, 2);
  job.StartWorker("p1", 0, 2);
  job.Give("p0", BoundaryReached{job.ViewOf("p0").epoch});
  ASSERT_EQ(job.ViewOf("p1").ranks.size(), 3u) << "the last of them with the state";
  ASSERT_TRUE(job["p1"].able());
  job.KillWorker("p0", 1);
  job.Pass(milliseconds(500));
  EXPECT_TRUE(job["p0"].state_lost());
  EXPECT_FALSE(job["p0"].able());
  EXPECT_FALSE(job["p1"].able());
}

}  // namespace
}  // namespace ringmaster::membership
