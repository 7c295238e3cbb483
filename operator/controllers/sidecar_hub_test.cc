// What the operator knows from its sidecars, and what it tells each of them once.
#include "operator/controllers/sidecar_hub.h"

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

class SidecarHubTest : public testing::Test {
 protected:
  SidecarHub::AttendanceId Attend(const std::string& pod, std::uint64_t epoch = 0,
                                  const std::string& job = "job-uid") {
    sinks_[pod] = std::make_shared<Sink>();
    return hub_.Attend({.job_namespace = "ns",
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
    for (const auto& sidecar : hub_.Facts("job-uid").sidecars) {
      if (sidecar.pod_uid == pod) return sidecar;
    }
    ADD_FAILURE() << "nothing is known of " << pod;
    return {};
  }
  std::size_t Sent(const std::string& pod) { return sinks_[pod]->sent.size(); }

  SidecarHub hub_;
  std::map<std::string, std::shared_ptr<Sink>> sinks_;
};

TEST_F(SidecarHubTest, WhoLeavesIsNeitherReadyNorAbleAndItsReportIsVoid) {
  const auto id = Attend("a");
  hub_.OnReadiness(id, true, {3}, {.pod = {.uid = "a"}});
  hub_.OnHealth(id, true, std::chrono::minutes(10));
  hub_.OnRecoveryReport(id, {.lineage = 2});
  const planner::SidecarFacts said = Facts("a");
  EXPECT_TRUE(said.report && said.able);
  EXPECT_EQ(said.http_address, "h:1");
  EXPECT_EQ(said.boot_id, "boot-1");
  EXPECT_THAT(said.missing_slots, ElementsAre(3));
  EXPECT_EQ(said.candidate.pod.uid, "a");
  EXPECT_EQ(hub_.attending(), 1u);
  hub_.Leave(id);
  const planner::SidecarFacts facts = Facts("a");
  EXPECT_FALSE(facts.attending);
  EXPECT_FALSE(facts.ready);
  EXPECT_FALSE(facts.ready_since);
  EXPECT_FALSE(facts.able);
  EXPECT_FALSE(facts.report) << "it may come back without its promise";
  EXPECT_GT(facts.unable_since, std::chrono::system_clock::now() - std::chrono::minutes(9));
  EXPECT_EQ(hub_.attending(), 0u);
  hub_.Tell("job-uid", "a", planner::FinishNotice{});
  EXPECT_EQ(Sent("a"), 0u);
}

TEST_F(SidecarHubTest, ASecondStreamTakesThePlaceOfTheFirst) {
  const auto first = Attend("a");
  hub_.OnFinished(first, 7);
  const auto first_sink = sinks_["a"];
  const auto second = Attend("a", 5);
  EXPECT_EQ(Facts("a").finished_epoch, 7u) << "that can't be taken back";
  EXPECT_EQ(Facts("a").epoch, 5u);
  EXPECT_EQ(hub_.attending(), 1u);
  hub_.OnHealth(first, true, milliseconds(0));
  EXPECT_FALSE(Facts("a").able) << "the first stream has nothing to say any more";
  hub_.Leave(first);
  EXPECT_TRUE(Facts("a").attending);
  hub_.Tell("job-uid", "a", planner::FinishNotice{});
  EXPECT_EQ(Sent("a"), 1u);
  EXPECT_THAT(first_sink->sent, IsEmpty());
  hub_.Leave(second);
  EXPECT_FALSE(Facts("a").attending);
}

TEST_F(SidecarHubTest, WhoComesCountsAsUnableFromThenOn) {
  const planner::Time before = std::chrono::system_clock::now();
  Attend("a");
  EXPECT_GE(Facts("a").unable_since, before);
}

TEST_F(SidecarHubTest, ReadySinceIsTheMomentItBecameReady) {
  const auto id = Attend("a");
  hub_.OnReadiness(id, true, {}, {});
  const auto since = Facts("a").ready_since;
  ASSERT_TRUE(since);
  hub_.OnReadiness(id, true, {}, {});
  EXPECT_EQ(Facts("a").ready_since, since);
  hub_.OnReadiness(id, false, {0}, {});
  EXPECT_FALSE(Facts("a").ready_since);
}

TEST_F(SidecarHubTest, EachTopicIsToldOnceAndAgainWhenItHasChanged) {
  Attend("a");
  const auto tell = [&](const planner::Notice& notice) {
    hub_.Tell("job-uid", "a", notice);
    return Sent("a");
  };
  EXPECT_EQ(tell(planner::TargetNotice{1, 4, 4}), 1u);
  EXPECT_EQ(tell(planner::TargetNotice{1, 4, 4}), 1u);
  EXPECT_EQ(tell(planner::TargetNotice{1, 4, 2}), 2u);
  EXPECT_EQ(tell(planner::TargetNotice{1, 4, 2}), 2u);
  EXPECT_EQ(tell(planner::TargetNotice{1, 4, 4}), 3u) << "back again is a change too";
  EXPECT_EQ(tell(planner::PodGoneNotice{"x", "gone", false}), 4u);
  EXPECT_EQ(tell(planner::PodGoneNotice{"y", "gone", false}), 5u);
  EXPECT_EQ(tell(planner::PodGoneNotice{"x", "gone", false}), 5u) << "each pod is a topic";
  EXPECT_EQ(tell(planner::PodGoneNotice{"x", "gone", true}), 6u);
  EXPECT_EQ(tell(planner::DrainNotice{{"x"}, "r", 1}), 7u);
  EXPECT_EQ(tell(planner::DrainNotice{{"y"}, "r", 1}), 8u);
  EXPECT_EQ(tell(planner::DrainNotice{{"x"}, "r", 1}), 8u);
  Attend("a");
  EXPECT_EQ(tell(planner::TargetNotice{1, 4, 4}), 1u) << "a new stream has been told nothing";
}

TEST_F(SidecarHubTest, TheNewestViewCountsAndTheSlowestFiguresOfEach) {
  const auto a = Attend("a"), b = Attend("b");
  hub_.OnView(a, View(3), Figures(3, "PodLost", 0.2, 1));
  hub_.OnView(b, View(2), Figures(3, "", 0.1, 4));
  hub_.OnView(a, View(2), Figures(3, "", 0.1, 0));
  const SidecarHub::JobFacts facts = hub_.Facts("job-uid");
  EXPECT_EQ(facts.view->epoch, MakeEpoch(1, 3));
  EXPECT_EQ(Facts("a").epoch, MakeEpoch(1, 3)) << "late news takes nothing back";
  ASSERT_EQ(facts.rebuilds.size(), 1u);
  EXPECT_EQ(facts.rebuilds[0].reason, "PodLost");
  EXPECT_EQ(job::TotalSeconds(facts.rebuilds[0].seconds), 0.2);
  EXPECT_EQ(facts.rebuilds[0].steps_lost, 4);
}

TEST_F(SidecarHubTest, OnlyTheLatestFiguresAreKept) {
  const auto id = Attend("a");
  for (std::uint64_t i = 1; i <= 100; ++i) hub_.OnView(id, nullptr, Figures(i, "PodLost", 0, 0));
  const auto rebuilds = hub_.Facts("job-uid").rebuilds;
  EXPECT_EQ(rebuilds.size(), 64u);
  EXPECT_EQ(rebuilds.back().epoch, 100u);
}

TEST_F(SidecarHubTest, AnExitThatIsReportedTwiceIsOneAndGoesOnceItIsCounted) {
  const auto id = Attend("a");
  hub_.OnWorkerExit(id, {.slot = 0, .exit_code = 137, .incarnation = 1});
  hub_.OnWorkerExit(id, {.slot = 0, .exit_code = 137, .incarnation = 1});
  hub_.OnWorkerExit(id, {.slot = 0, .exit_code = 139, .incarnation = 2});
  for (const std::uint64_t again : {1, 2}) {
    hub_.OnWorkerExit(id, {.slot = 0, .exit_code = 137, .incarnation = again});
  }
  ASSERT_EQ(hub_.Facts("job-uid").exits.size(), 2u);
  EXPECT_EQ(hub_.Facts("job-uid").exits[0].pod_name, "a");
  hub_.ExitsCounted("job-uid", 1);
  ASSERT_EQ(hub_.Facts("job-uid").exits.size(), 1u) << "the other one came meanwhile";
  EXPECT_EQ(hub_.Facts("job-uid").exits[0].exit_code, 139);
  hub_.ExitsCounted("job-uid", 9);
  EXPECT_THAT(hub_.Facts("job-uid").exits, IsEmpty());
}

TEST_F(SidecarHubTest, HowItsLastWorkerEndedIsRememberedOverAReconnectUnlessItWasAskedFor) {
  const auto id = Attend("a");
  EXPECT_EQ(Facts("a").last_exit, std::nullopt);
  hub_.OnWorkerExit(id, {.slot = 0, .exit_code = 139, .incarnation = 1});
  hub_.OnWorkerExit(id, {.slot = 0, .exit_code = 137, .incarnation = 2});
  hub_.OnWorkerExit(id, {.slot = 0, .exit_code = 143, .by_us = true, .incarnation = 3});
  EXPECT_EQ(Facts("a").last_exit, 137);
  hub_.Leave(id);
  Attend("a");
  EXPECT_EQ(Facts("a").last_exit, 137);
}

TEST_F(SidecarHubTest, FinishedOnlyRisesAndUnableCountsFromWhenItBegan) {
  const auto id = Attend("a");
  hub_.OnFinished(id, 7);
  hub_.OnFinished(id, 5);
  EXPECT_EQ(Facts("a").finished_epoch, 7u);
  hub_.OnHealth(id, false, std::chrono::minutes(10));
  EXPECT_LT(Facts("a").unable_since, std::chrono::system_clock::now() - std::chrono::minutes(9));
}

TEST_F(SidecarHubTest, AViewIsFirstSeenOnce) {
  const planner::Time first = hub_.FirstSeen("ns/digits", "job-uid", 1);
  while (std::chrono::system_clock::now() == first) {
  }
  EXPECT_EQ(hub_.FirstSeen("ns/digits", "job-uid", 1), first);
  EXPECT_GT(hub_.FirstSeen("ns/digits", "job-uid", 2), first);
}

TEST_F(SidecarHubTest, AJobOfWhichNoSidecarWasHeardIsForgottenAsAnyOther) {
  const planner::Time seen = hub_.FirstSeen("ns/seen", "seen-uid", 1);
  const planner::Time kept = hub_.FirstSeen("ns/kept", "kept-uid", 1);
  hub_.TakenOver("ns/taken", "taken-uid", false);
  while (std::chrono::system_clock::now() == kept) {
  }
  hub_.Forget("ns/seen");
  hub_.Forget("ns/taken");
  EXPECT_GT(hub_.FirstSeen("ns/seen", "seen-uid", 1), seen);
  EXPECT_GT(hub_.TakenOver("ns/taken", "taken-uid", true), kept);
  EXPECT_EQ(hub_.FirstSeen("ns/kept", "kept-uid", 1), kept);
}

TEST_F(SidecarHubTest, AJobThatAnotherHasBegunIsTakenOverOnce) {
  const planner::Time before = std::chrono::system_clock::now();
  const planner::Time since = hub_.TakenOver("ns/digits", "job-uid", true);
  EXPECT_GE(since, before);
  while (std::chrono::system_clock::now() == since) {
  }
  EXPECT_EQ(hub_.TakenOver("ns/digits", "job-uid", true), since);
  EXPECT_EQ(hub_.TakenOver("ns/own", "own-uid", false), planner::Time());
  EXPECT_EQ(hub_.TakenOver("ns/own", "own-uid", true), planner::Time()) << "it began here";
}

TEST_F(SidecarHubTest, WhatAPodThatIsGoneHasReportedIsForgotten) {
  for (int life = 0; life < 2; ++life) {
    const auto id = Attend("a");
    hub_.OnWorkerExit(id, {.slot = 0, .exit_code = 137, .incarnation = 1});
    hub_.OnWorkerExit(id, {.slot = 1, .exit_code = 137, .incarnation = 1});
    hub_.Leave(id);
    hub_.Retain("job-uid", {"a"});
    hub_.OnWorkerExit(Attend("a"), {.slot = 0, .exit_code = 137, .incarnation = 1});
    EXPECT_EQ(hub_.Facts("job-uid").exits.size(), 2u * (life + 1)) << "its pod is there";
    hub_.Leave(Attend("a"));
    hub_.Retain("job-uid", {});
  }
}

TEST_F(SidecarHubTest, ThoseThatAttendOrHaveAPodAreRetained) {
  Attend("attends");
  hub_.Leave(Attend("has-a-pod"));
  hub_.Leave(Attend("gone"));
  hub_.Retain("job-uid", {"has-a-pod"});
  std::vector<std::string> left;
  for (const auto& sidecar : hub_.Facts("job-uid").sidecars) left.push_back(sidecar.pod_uid);
  EXPECT_THAT(left, ElementsAre("attends", "has-a-pod"));
}

TEST_F(SidecarHubTest, AFormerJobOfTheNameIsForgottenAndTheNewOneIsNot) {
  const auto old = Attend("old", 0, "old-uid");
  Attend("new");
  hub_.Forget("ns/digits", "job-uid");
  EXPECT_THAT(hub_.Facts("old-uid").sidecars, IsEmpty());
  EXPECT_EQ(hub_.Facts("job-uid").sidecars.size(), 1u);
  EXPECT_EQ(hub_.attending(), 1u);
  hub_.OnHealth(old, true, milliseconds(0));
  EXPECT_THAT(hub_.Facts("old-uid").sidecars, IsEmpty()) << "its stream brings nothing back";
}

TEST_F(SidecarHubTest, EveryChangeIsReported) {
  std::vector<std::string> keys;
  std::vector<milliseconds> delays;
  hub_.SetChangeHandler([&](const std::string& key, milliseconds delay) {
    keys.push_back(key);
    delays.push_back(delay);
  });
  const auto id = Attend("a");
  hub_.OnFinished(id, 1);
  hub_.OnView(id, View(1), std::nullopt);
  hub_.Leave(id);
  EXPECT_THAT(keys, ElementsAre("ns/digits", "ns/digits", "ns/digits", "ns/digits"));
  const milliseconds at_once(0);
  EXPECT_THAT(delays, ElementsAre(at_once, at_once, testing::Gt(at_once), at_once))
      << "every pod tells of a view within a moment";
}

}  // namespace
}  // namespace ringmaster::controllers
