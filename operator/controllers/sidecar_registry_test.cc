// What the operator knows from its sidecars, and what it sends each of them once.
#include "operator/controllers/sidecar_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::controllers {
namespace {

using membership::MakeEpoch;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class Sink : public NoticeSink {
 public:
  void Send(const planner::Notice& notice) override { sent.push_back(notice); }
  std::vector<planner::Notice> sent;
};

membership::ViewPtr View(std::uint64_t number) {
  membership::View view;
  view.epoch = MakeEpoch(1, number);
  return std::make_shared<const membership::View>(view);
}

job::Rebuild Figures(std::uint64_t epoch, const char* reason, double seconds,
                     std::int64_t steps_lost) {
  return {
      .epoch = epoch, .reason = reason, .seconds = {{"decide", seconds}}, .steps_lost = steps_lost};
}

class SidecarRegistryTest : public testing::Test {
 protected:
  SidecarRegistry::ConnectionId Connect(const std::string& pod, std::uint64_t epoch = 0,
                                        const std::string& job = "job-uid") {
    sinks_[pod] = std::make_shared<Sink>();
    return registry_.Connect({.job_namespace = "ns",
                              .job_name = "digits",
                              .job_uid = job,
                              .pod_name = pod,
                              .pod_uid = pod,
                              .http_address = "h:1",
                              .epoch = epoch,
                              .boot_id = "boot-1"},
                             sinks_[pod]);
  }
  planner::SidecarFacts Facts(const std::string& pod) {
    for (const auto& sidecar : registry_.Facts("job-uid").sidecars) {
      if (sidecar.pod_uid == pod) return sidecar;
    }
    ADD_FAILURE() << "nothing is known of " << pod;
    return {};
  }
  std::size_t Sent(const std::string& pod) { return sinks_[pod]->sent.size(); }

  SidecarRegistry registry_;
  std::map<std::string, std::shared_ptr<Sink>> sinks_;
};

TEST_F(SidecarRegistryTest, WhoLeavesIsNeitherReadyNorAbleAndItsReportIsVoid) {
  const auto id = Connect("a");
  registry_.Take(id, ReadinessReport{true, {3}, {.pod = {.uid = "a"}}});
  registry_.Take(id, HealthReport{true, std::chrono::minutes(10)});
  registry_.Take(id, membership::RecoveryReport{.lineage = 2});
  const planner::SidecarFacts said = Facts("a");
  EXPECT_TRUE(said.report && said.able);
  EXPECT_EQ(said.http_address, "h:1");
  EXPECT_EQ(said.boot_id, "boot-1");
  EXPECT_THAT(said.missing_slots, ElementsAre(3));
  EXPECT_EQ(said.candidate.pod.uid, "a");
  EXPECT_EQ(registry_.connected(), 1u);
  registry_.Disconnect(id);
  const planner::SidecarFacts facts = Facts("a");
  EXPECT_FALSE(facts.connected);
  EXPECT_FALSE(facts.ready);
  EXPECT_FALSE(facts.ready_since);
  EXPECT_FALSE(facts.able);
  EXPECT_FALSE(facts.report) << "it may come back without its promise";
  EXPECT_GT(facts.unable_since, std::chrono::system_clock::now() - std::chrono::minutes(9));
  EXPECT_EQ(registry_.connected(), 0u);
  registry_.Notify("job-uid", {{"a", planner::FinishNotice{}}});
  EXPECT_EQ(Sent("a"), 0u);
}

TEST_F(SidecarRegistryTest, ASecondStreamTakesThePlaceOfTheFirst) {
  const auto first = Connect("a");
  registry_.Take(first, FinishedReport{7});
  const auto first_sink = sinks_["a"];
  const auto second = Connect("a", 5);
  EXPECT_EQ(Facts("a").finished_epoch, 7u) << "that can't be taken back";
  EXPECT_EQ(Facts("a").epoch, 5u);
  EXPECT_EQ(registry_.connected(), 1u);
  registry_.Take(first, HealthReport{true, milliseconds(0)});
  EXPECT_FALSE(Facts("a").able) << "the first stream has nothing to say any more";
  registry_.Disconnect(first);
  EXPECT_TRUE(Facts("a").connected);
  registry_.Notify("job-uid", {{"a", planner::FinishNotice{}}});
  EXPECT_EQ(Sent("a"), 1u);
  EXPECT_THAT(first_sink->sent, IsEmpty());
  registry_.Disconnect(second);
  EXPECT_FALSE(Facts("a").connected);
}

TEST_F(SidecarRegistryTest, WhoComesCountsAsUnableFromThenOn) {
  const planner::Time before = std::chrono::system_clock::now();
  Connect("a");
  EXPECT_GE(Facts("a").unable_since, before);
}

TEST_F(SidecarRegistryTest, ReadySinceIsTheMomentItBecameReady) {
  const auto id = Connect("a");
  registry_.Take(id, ReadinessReport{true, {}, {}});
  const auto since = Facts("a").ready_since;
  ASSERT_TRUE(since);
  registry_.Take(id, ReadinessReport{true, {}, {}});
  EXPECT_EQ(Facts("a").ready_since, since);
  registry_.Take(id, ReadinessReport{false, {0}, {}});
  EXPECT_FALSE(Facts("a").ready_since);
}

TEST_F(SidecarRegistryTest, ANewStreamHasBeenToldNothing) {
  Connect("a");
  const auto tell = [&] {
    registry_.Notify("job-uid", {{"a", planner::TargetNotice{{1, {}}, 4}}});
    return Sent("a");
  };
  EXPECT_EQ(tell(), 1u);
  EXPECT_EQ(tell(), 1u);
  Connect("a");
  EXPECT_EQ(tell(), 1u);
}

TEST_F(SidecarRegistryTest, EachSidecarIsToldItsOwnNotices) {
  Connect("a");
  Connect("b");
  registry_.Notify("job-uid", {{"a", planner::TargetNotice{{1, {}}, 4}},
                               {"b", planner::TargetNotice{{1, {}}, 4}},
                               {"b", planner::FinishNotice{}},
                               {"gone", planner::FinishNotice{}}});
  EXPECT_EQ(Sent("a"), 1u);
  EXPECT_EQ(Sent("b"), 2u);
}

TEST_F(SidecarRegistryTest, WithoutALookupNoJobIsKnown) {
  EXPECT_FALSE(registry_.KnowsJob("ns/digits", "job-uid"));
  registry_.SetJobLookup([](const std::string& key, const std::string& uid) {
    return key == "ns/digits" && uid == "job-uid";
  });
  EXPECT_TRUE(registry_.KnowsJob("ns/digits", "job-uid"));
  EXPECT_FALSE(registry_.KnowsJob("ns/digits", "another"));
}

TEST_F(SidecarRegistryTest, TheNewestViewCountsAndTheSlowestFiguresOfEach) {
  const auto a = Connect("a"), b = Connect("b");
  registry_.Take(a, ViewReport::Whole(View(3), Figures(3, "PodLost", 0.2, 1)));
  registry_.Take(b, ViewReport::Whole(View(2), Figures(3, "", 0.1, 4)));
  registry_.Take(a, ViewReport::Whole(View(2), Figures(3, "", 0.1, 0)));
  const JobFacts facts = registry_.Facts("job-uid");
  EXPECT_EQ(facts.view->epoch, MakeEpoch(1, 3));
  EXPECT_EQ(Facts("a").epoch, MakeEpoch(1, 3)) << "late news takes nothing back";
  ASSERT_EQ(facts.rebuilds.size(), 1u);
  EXPECT_EQ(facts.rebuilds[0].reason, "PodLost");
  EXPECT_EQ(job::TotalSeconds(facts.rebuilds[0].seconds), 0.2);
  EXPECT_EQ(facts.rebuilds[0].steps_lost, 4);
}

TEST_F(SidecarRegistryTest, OnlyTheLatestFiguresAreKept) {
  const auto id = Connect("a");
  for (std::uint64_t i = 1; i <= 100; ++i)
    registry_.Take(id, ViewReport::Whole(nullptr, Figures(i, "PodLost", 0, 0)));
  const auto rebuilds = registry_.Facts("job-uid").rebuilds;
  EXPECT_EQ(rebuilds.size(), 64u);
  EXPECT_EQ(rebuilds.back().epoch, 100u);
}

TEST_F(SidecarRegistryTest, AnExitThatIsReportedTwiceIsOneAndGoesOnceItIsCounted) {
  const auto id = Connect("a");
  registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 137, .incarnation = 1});
  registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 137, .incarnation = 1});
  registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 139, .incarnation = 2});
  for (const std::uint64_t again : {1, 2}) {
    registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 137, .incarnation = again});
  }
  ASSERT_EQ(registry_.Facts("job-uid").exits.size(), 2u);
  EXPECT_EQ(registry_.Facts("job-uid").exits[0].pod_name, "a");
  registry_.ExitsCounted("job-uid", 1);
  ASSERT_EQ(registry_.Facts("job-uid").exits.size(), 1u) << "the other one came meanwhile";
  EXPECT_EQ(registry_.Facts("job-uid").exits[0].exit_code, 139);
  registry_.ExitsCounted("job-uid", 9);
  EXPECT_THAT(registry_.Facts("job-uid").exits, IsEmpty());
}

TEST_F(SidecarRegistryTest, HowItsLastWorkerEndedIsRememberedOverAReconnectUnlessItWasAskedFor) {
  const auto id = Connect("a");
  EXPECT_EQ(Facts("a").last_exit, std::nullopt);
  registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 139, .incarnation = 1});
  registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 137, .incarnation = 2});
  registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 143, .by_us = true, .incarnation = 3});
  EXPECT_EQ(Facts("a").last_exit, 137);
  registry_.Disconnect(id);
  Connect("a");
  EXPECT_EQ(Facts("a").last_exit, 137);
}

TEST_F(SidecarRegistryTest, FinishedOnlyRisesAndUnableCountsFromWhenItBegan) {
  const auto id = Connect("a");
  registry_.Take(id, FinishedReport{7});
  registry_.Take(id, FinishedReport{5});
  EXPECT_EQ(Facts("a").finished_epoch, 7u);
  registry_.Take(id, HealthReport{false, std::chrono::minutes(10)});
  EXPECT_LT(Facts("a").unable_since, std::chrono::system_clock::now() - std::chrono::minutes(9));
  // Whatever a pod says, a time before now comes of it, and a year at most.
  registry_.Take(id, HealthReport{false, milliseconds::max()});
  EXPECT_LT(Facts("a").unable_since, std::chrono::system_clock::now() - std::chrono::hours(8'000));
  EXPECT_GT(Facts("a").unable_since, std::chrono::system_clock::now() - std::chrono::hours(9'000));
  registry_.Take(id, HealthReport{false, milliseconds::min()});
  EXPECT_LE(Facts("a").unable_since, std::chrono::system_clock::now());
}

TEST_F(SidecarRegistryTest, AnAwaitedStepIsKnownUntilItEndsOrTheSidecarIsGone) {
  const auto id = Connect("a");
  EXPECT_FALSE(Facts("a").step_awaited_since);
  registry_.Take(id, StepAwaitedReport{std::chrono::minutes(10)});
  ASSERT_TRUE(Facts("a").step_awaited_since);
  EXPECT_LT(*Facts("a").step_awaited_since,
            std::chrono::system_clock::now() - std::chrono::minutes(9));
  registry_.Take(id, StepAwaitedReport{milliseconds(0)});
  EXPECT_FALSE(Facts("a").step_awaited_since);
  registry_.Take(id, StepAwaitedReport{std::chrono::minutes(10)});
  registry_.Disconnect(id);
  EXPECT_FALSE(Facts("a").step_awaited_since);
}

TEST_F(SidecarRegistryTest, AViewIsFirstSeenOnce) {
  const planner::Time first = registry_.FirstSeen("ns/digits", "job-uid", 1);
  while (std::chrono::system_clock::now() == first) {
  }
  EXPECT_EQ(registry_.FirstSeen("ns/digits", "job-uid", 1), first);
  EXPECT_GT(registry_.FirstSeen("ns/digits", "job-uid", 2), first);
}

TEST_F(SidecarRegistryTest, AJobOfWhichNoSidecarWasHeardIsForgottenAsAnyOther) {
  const planner::Time seen = registry_.FirstSeen("ns/seen", "seen-uid", 1);
  const planner::Time kept = registry_.FirstSeen("ns/kept", "kept-uid", 1);
  registry_.TakenOver("ns/taken", "taken-uid", false);
  while (std::chrono::system_clock::now() == kept) {
  }
  registry_.Forget("ns/seen");
  registry_.Forget("ns/taken");
  EXPECT_GT(registry_.FirstSeen("ns/seen", "seen-uid", 1), seen);
  EXPECT_GT(registry_.TakenOver("ns/taken", "taken-uid", true), kept);
  EXPECT_EQ(registry_.FirstSeen("ns/kept", "kept-uid", 1), kept);
}

TEST_F(SidecarRegistryTest, AJobThatAnotherHasBegunIsTakenOverOnce) {
  const planner::Time before = std::chrono::system_clock::now();
  const planner::Time since = registry_.TakenOver("ns/digits", "job-uid", true);
  EXPECT_GE(since, before);
  while (std::chrono::system_clock::now() == since) {
  }
  EXPECT_EQ(registry_.TakenOver("ns/digits", "job-uid", true), since);
  EXPECT_EQ(registry_.TakenOver("ns/own", "own-uid", false), planner::Time());
  EXPECT_EQ(registry_.TakenOver("ns/own", "own-uid", true), planner::Time()) << "it began here";
}

TEST_F(SidecarRegistryTest, WhatAPodThatIsGoneHasReportedIsForgotten) {
  for (int life = 0; life < 2; ++life) {
    const auto id = Connect("a");
    registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 137, .incarnation = 1});
    registry_.Take(id, job::WorkerExit{.slot = 1, .exit_code = 137, .incarnation = 1});
    registry_.Disconnect(id);
    registry_.Retain("job-uid", {"a"});
    registry_.Take(Connect("a"), job::WorkerExit{.slot = 0, .exit_code = 137, .incarnation = 1});
    EXPECT_EQ(registry_.Facts("job-uid").exits.size(), 2u * (life + 1)) << "its pod is there";
    registry_.Disconnect(Connect("a"));
    registry_.Retain("job-uid", {});
  }
}

TEST_F(SidecarRegistryTest, ThoseThatAreConnectedOrHaveAPodAreRetained) {
  Connect("attends");
  registry_.Disconnect(Connect("has-a-pod"));
  registry_.Disconnect(Connect("gone"));
  registry_.Retain("job-uid", {"has-a-pod"});
  std::vector<std::string> left;
  for (const auto& sidecar : registry_.Facts("job-uid").sidecars) left.push_back(sidecar.pod_uid);
  EXPECT_THAT(left, ElementsAre("attends", "has-a-pod"));
}

TEST_F(SidecarRegistryTest, AFormerJobOfTheNameIsForgottenAndTheNewOneIsNot) {
  const auto old = Connect("old", 0, "old-uid");
  Connect("new");
  registry_.Forget("ns/digits", "job-uid");
  EXPECT_THAT(registry_.Facts("old-uid").sidecars, IsEmpty());
  EXPECT_EQ(registry_.Facts("job-uid").sidecars.size(), 1u);
  EXPECT_EQ(registry_.connected(), 1u);
  registry_.Take(old, HealthReport{true, milliseconds(0)});
  EXPECT_THAT(registry_.Facts("old-uid").sidecars, IsEmpty()) << "its stream brings nothing back";
}

// They would else look for other pods that take over until they are killed.
TEST_F(SidecarRegistryTest, TheSidecarsOfADeletedJobAreToldThatAllLeave) {
  Connect("a");
  const auto b = Connect("b");
  Connect("other", 0, "other-uid");
  registry_.Dismiss("job-uid");
  registry_.Dismiss("job-uid");
  for (const char* pod : {"a", "b"}) {
    ASSERT_EQ(Sent(pod), 1u) << pod;
    const auto* drain = std::get_if<planner::DrainNotice>(&sinks_[pod]->sent[0]);
    ASSERT_NE(drain, nullptr);
    EXPECT_TRUE(drain->all_leave);
    EXPECT_THAT(*drain->pod_uids, ElementsAre("a", "b"));
  }
  EXPECT_EQ(Sent("other"), 0u);
  registry_.Disconnect(b);
  registry_.Dismiss("job-uid");
  EXPECT_EQ(Sent("a"), 1u) << "it has been told of both";
  Connect("c");
  registry_.Dismiss("job-uid");
  ASSERT_EQ(Sent("c"), 1u);
  const auto* late = std::get_if<planner::DrainNotice>(&sinks_["c"]->sent[0]);
  ASSERT_NE(late, nullptr);
  EXPECT_THAT(*late->pod_uids, ElementsAre("a", "b", "c"));
  registry_.Forget("ns/digits", "job-uid");
  EXPECT_EQ(Sent("other"), 1u) << "it was deleted in the background";
}

TEST_F(SidecarRegistryTest, WhatOneSidecarSendsWithoutEndIsBounded) {
  const auto id = Connect("a");
  for (std::uint64_t i = 1; i <= 10'000; ++i) {
    registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 1, .incarnation = i});
    registry_.Take(id, job::WorkerExit{.slot = static_cast<int>(i) + 5'000, .incarnation = i});
    registry_.Take(id, job::WorkerExit{.slot = -static_cast<int>(i), .incarnation = i});
  }
  EXPECT_EQ(registry_.Facts("job-uid").exits.size(), 4'096u);
  registry_.ExitsCounted("job-uid", 4'096);
  registry_.Take(id, job::WorkerExit{.slot = 0, .exit_code = 1, .incarnation = 20'000});
  EXPECT_EQ(registry_.Facts("job-uid").exits.size(), 1u) << "what was counted makes room";
}

TEST_F(SidecarRegistryTest, ASidecarMayNotTakeTheJobToAnotherName) {
  const job::Registration claim{.job_namespace = "ns",
                                .job_name = "digits",
                                .job_uid = "job-uid",
                                .pod_name = "a",
                                .pod_uid = "a"};
  EXPECT_EQ(registry_.WhyNotConnect(claim), "") << "nothing is known of the job yet";
  registry_.FirstSeen("ns/real", "job-uid", 1);
  EXPECT_THAT(registry_.WhyNotConnect(claim), testing::HasSubstr("is ns/real"));
  job::Registration real = claim;
  real.job_name = "real";
  EXPECT_EQ(registry_.WhyNotConnect(real), "");
}

TEST_F(SidecarRegistryTest, EveryChangeIsReported) {
  std::vector<std::string> keys;
  std::vector<milliseconds> delays;
  registry_.SetChangeHandler([&](const std::string& key, milliseconds delay) {
    keys.push_back(key);
    delays.push_back(delay);
  });
  const auto id = Connect("a");
  registry_.Take(id, FinishedReport{1});
  registry_.Take(id, ViewReport::Whole(View(1), std::nullopt));
  registry_.Disconnect(id);
  EXPECT_THAT(keys, ElementsAre("ns/digits", "ns/digits", "ns/digits", "ns/digits"));
  const milliseconds at_once(0);
  EXPECT_THAT(delays, ElementsAre(at_once, at_once, testing::Gt(at_once), at_once))
      << "every pod tells of a view within a moment";
}

}  // namespace
}  // namespace ringmaster::controllers
