#include "operator/planner/proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "operator/api/labels.h"
#include "operator/planner/testing/world.h"

namespace ringmaster::planner {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kMachine[] = "machine-id system-uuid";

// A pod that ran during the first boot of a node; a case changes what is known of both.
struct Evidence {
  PodFacts pod;
  NodeFacts node;
  bool node_known = true;
  bool instance_gone = false;

  Evidence() {
    pod.name = "digits-worker-1";
    pod.uid = "uid-1";
    pod.node = "gpu-a";
    pod.phase = PodPhase::kRunning;
    pod.scheduled = pod.accepted = true;
    node = {.name = "gpu-a", .ready = true, .boot_id = "boot-1", .machine = kMachine};
    pod.boot = node.BootRecord();
  }
  std::optional<std::string> Proof() const {
    return ProofOfDeath(pod,
                        {.node = node_known ? &node : nullptr, .instance_gone = instance_gone});
  }
};

struct ProofCase {
  std::string name;
  std::string proof;  // part of the proof; empty: there is none
  std::function<void(Evidence&)> change;
};

void OutOfService(Evidence& e) {
  e.node.ready = false;
  e.node.taints = {{kOutOfServiceTaint, "NoExecute"}};
}

class ProofTable : public testing::TestWithParam<ProofCase> {};

TEST_P(ProofTable, SaysWhatProvesADeath) {
  Evidence evidence;
  GetParam().change(evidence);
  const auto proof = evidence.Proof();
  EXPECT_EQ(proof.has_value(), !GetParam().proof.empty()) << proof.value_or("");
  EXPECT_THAT(proof.value_or(""), HasSubstr(GetParam().proof));
}

INSTANTIATE_TEST_SUITE_P(
    Proofs, ProofTable,
    testing::Values(ProofCase{"TheKubeletSaysSo", "every container has terminated",
                              [](Evidence& e) { e.pod.all_terminated = true; }},
                    ProofCase{"TheKubeletSaysSoThoughNothingIsKnownOfTheNode", "every container",
                              [](Evidence& e) {
                                e.pod.all_terminated = true;
                                e.node_known = false;
                              }},
                    ProofCase{"TheNodeHasRebooted", "gpu-a has rebooted",
                              [](Evidence& e) { e.node.boot_id = "boot-2"; }},
                    ProofCase{"OutOfService", "out-of-service", OutOfService},
                    ProofCase{"TheInstanceIsGone", "no longer exists",
                              [](Evidence& e) {
                                e.node_known = false;
                                e.instance_gone = true;
                              }},
                    ProofCase{"SomebodyVouches", "Ada has pulled its plug",
                              [](Evidence& e) { e.pod.vouched = "Ada has pulled its plug"; }}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    NoProofs, ProofTable,
    testing::Values(
        ProofCase{"ARunningPod", "", [](Evidence&) {}},
        ProofCase{"NotReady", "", [](Evidence& e) { e.node.ready = false; }},
        ProofCase{"Unreachable", "",
                  [](Evidence& e) {
                    e.node.ready = false;
                    e.node.taints = {{"node.kubernetes.io/unreachable", "NoExecute"}};
                  }},
        ProofCase{"Shutdown", "",
                  [](Evidence& e) {
                    e.node.ready = false;
                    e.node.taints = {{"node.cloudprovider.kubernetes.io/shutdown", "NoSchedule"}};
                  }},
        ProofCase{"ATerminatingObject", "",
                  [](Evidence& e) {
                    e.pod.deleting = true;
                    e.pod.delete_at = kNow - seconds(3600);
                  }},
        ProofCase{"PhaseFailed", "",
                  [](Evidence& e) {
                    e.pod.phase = PodPhase::kFailed;
                    e.pod.reason = "NodeLost";
                  }},
        ProofCase{"DisruptionTarget", "",
                  [](Evidence& e) { e.pod.drain_reason = e.pod.reason = "DeletionByPodGC"; }},
        ProofCase{"AnUnknownNode", "", [](Evidence& e) { e.node_known = false; }},
        ProofCase{"AnotherNodesFacts", "",
                  [](Evidence& e) {
                    OutOfService(e);
                    e.node.name = "gpu-b";
                  }},
        ProofCase{"ATaintOnANodeThatReportsReady", "",
                  [](Evidence& e) {
                    OutOfService(e);
                    e.node.ready = true;
                  }},
        ProofCase{"OutOfServiceBeforeAKubeletTookThePodUp", "",
                  [](Evidence& e) {
                    OutOfService(e);
                    e.pod.accepted = false;
                    e.pod.boot.clear();
                  }},
        ProofCase{"AnotherMachineUnderTheSameName", "",
                  [](Evidence& e) {
                    e.node.boot_id = "boot-2";
                    e.node.machine = "another machine";
                  }},
        ProofCase{"ABootThatNobodyRecorded", "",
                  [](Evidence& e) {
                    e.node.boot_id = "boot-2";
                    e.pod.boot.clear();
                  }},
        ProofCase{"ARecordThatIsNone", "",
                  [](Evidence& e) {
                    e.node.boot_id = "boot-2";
                    e.pod.boot = "boot-1";
                  }},
        ProofCase{"ARecordWithoutABoot", "",
                  [](Evidence& e) { e.pod.boot = std::string(" ") + kMachine; }},
        ProofCase{"ANodeThatDoesNotSayItsBoot", "", [](Evidence& e) { e.node.boot_id.clear(); }}),
    [](const auto& info) { return info.param.name; });

// ---- The sidecar and the node together tell in which boot a pod runs.

World WithBoots(const std::string& sidecar, const std::string& node) {
  World world = World::Training(2);
  for (const int i : {0, 1}) world.Pod(i).http = "10.0.0.1:80";
  world.On(0, "gpu-a");
  world.Node("gpu-a").boot_id = node;
  world.Sidecar(0).boot_id = sidecar;
  return world;
}

TEST(BootTest, IsRecordedOnceSidecarAndNodeSayTheSame) {
  World world = WithBoots("boot-1", "boot-1");
  Decision out = Plan(world.in);
  ASSERT_EQ(out.annotations.size(), 1u);
  EXPECT_EQ(out.annotations[0].key, api::kBootAnnotation);
  EXPECT_EQ(out.annotations[0].value, "boot-1 m gpu-a");
  world.Pod(0).boot = out.annotations[0].value;
  EXPECT_THAT(Plan(world.in).annotations, IsEmpty());
}

TEST(BootTest, OfANodeWhoseStatusIsOlderThanThePodIsNotRecorded) {
  // The node was rebooted, the pod was started after that, and the node's object still has the
  // former boot id. With that on the pod, the next update of the node would "prove" it dead.
  World world = WithBoots("boot-2", "boot-1");
  EXPECT_THAT(Plan(world.in).annotations, IsEmpty());
  world.Node("gpu-a").boot_id = "boot-2";
  EXPECT_EQ(Plan(world.in).annotations.at(0).value, "boot-2 m gpu-a");
}

TEST(BootTest, OfASidecarThatIsAwayIsNotRecorded) {
  World world = WithBoots("boot-1", "boot-1");
  world.Sidecar(0).connected = false;
  EXPECT_THAT(Plan(world.in).annotations, IsEmpty());
}

// ---- Deleted pods are kept until their death is proven, or no longer matters.

std::vector<std::string> Released(const Decision& decision) {
  std::vector<std::string> names;
  for (const PodRelease& pod : decision.releases) names.push_back(pod.name);
  return names;
}
std::vector<std::string> Warnings(const Decision& decision, const std::string& reason) {
  std::vector<std::string> messages;
  for (const Event& event : decision.events) {
    if (event.reason == reason) messages.push_back(event.message);
  }
  return messages;
}

// The last of three pods was lost: the others train without it, and its object is deleted.
World WithALostPod() {
  World world = World::Training(3);
  for (PodFacts& pod : world.in.pods) {
    pod.has_finalizer = true;
    pod.http = "10.0.0.1:80";
  }
  world.On(2, "gpu-c");
  world.Sidecar(2).connected = false;
  world.Members(2, {0, 1}).Settle();
  world.Pod(2).deleting = true;
  world.Pod(2).delete_at = kNow;
  return world;
}

void ProveDead(World& world, int index) {
  world.Pod(index).proven_dead = true;
  world.Pod(index).proof = "for a good reason";
}

TEST(ReleaseTest, ADeletedPodStaysWithoutProofAndGoesWithIt) {
  World world = WithALostPod();
  EXPECT_THAT(Released(Plan(world.in)), IsEmpty());
  ProveDead(world, 2);
  const Decision out = Plan(world.in);
  EXPECT_THAT(Released(out), ElementsAre("digits-worker-2"));
  EXPECT_EQ(out.releases[0].reason, "for a good reason");
  EXPECT_TRUE(out.releases[0].at_once) << "no kubelet will end the deletion";
  world.Pod(2).all_terminated = true;
  EXPECT_FALSE(Plan(world.in).releases.at(0).at_once);
}

TEST(ReleaseTest, AProofThatIsNotTheKubeletsIsWrittenOnThePod) {
  World world = WithALostPod();
  ProveDead(world, 2);
  Decision out = Plan(world.in);
  ASSERT_EQ(out.annotations.size(), 1u);
  EXPECT_EQ(out.annotations[0].key, api::kProvenAnnotation);
  EXPECT_EQ(out.annotations[0].value, "for a good reason");
  EXPECT_EQ(Warnings(out, "ProvenDead").size(), 1u);
  world.Pod(2).vouched = "for a good reason";
  out = Plan(world.in);
  EXPECT_THAT(out.annotations, IsEmpty());
  EXPECT_THAT(Warnings(out, "ProvenDead"), IsEmpty());
}

TEST(ReleaseTest, AMembersProofIsInTheStatusBeforeItsObjectGoes) {
  World world = WithALostPod();
  world.Members(3, {0, 1, 2});
  ProveDead(world, 2);
  Decision out = Plan(world.in);
  EXPECT_THAT(Released(out), IsEmpty());
  EXPECT_THAT(out.status.proven_dead, ElementsAre("uid-2"));
  world.in.job.status = out.status;
  out = Plan(world.in);
  EXPECT_THAT(Released(out), ElementsAre("digits-worker-2"));
  world.Remove(2);
  out = Plan(world.in);
  EXPECT_THAT(out.status.proven_dead, ElementsAre("uid-2")) << "the proof outlives the object";
  for (const GonePod& gone : Gone(out)) EXPECT_NE(gone.reason, "PodGone");
  world.Members(4, {0, 1});
  EXPECT_THAT(Plan(world.in).status.proven_dead, IsEmpty()) << "nobody will ask for it any more";
}

TEST(ReleaseTest, OneThatIsHeldForLongSaysWhyOnce) {
  World world = WithALostPod();
  world.Node("gpu-c").ready = false;
  Decision out = Plan(world.in);
  EXPECT_THAT(Warnings(out, "WaitingForProofOfDeath"), IsEmpty()) << "its kubelet has a moment";
  ASSERT_TRUE(out.look_again);
  world.in.now += seconds(10);
  out = Plan(world.in);
  ASSERT_EQ(Warnings(out, "WaitingForProofOfDeath").size(), 1u);
  EXPECT_THAT(Warnings(out, "WaitingForProofOfDeath")[0],
              HasSubstr("digits-worker-2 is deleted, but nothing proves that it is dead; node "
                        "gpu-c is not Ready"));
  ASSERT_EQ(out.annotations.size(), 1u);
  EXPECT_EQ(out.annotations[0].key, api::kHeldAnnotation);
  world.Pod(2).held_why = out.annotations[0].value;
  out = Plan(world.in);
  EXPECT_THAT(Warnings(out, "WaitingForProofOfDeath"), IsEmpty());
  EXPECT_THAT(out.annotations, IsEmpty());
}

struct ReleaseCase {
  std::string name;
  bool released;
  std::function<void(World&)> change;
};

class ReleaseTable : public testing::TestWithParam<ReleaseCase> {};

TEST_P(ReleaseTable, LetsGoWhoseDeathDoesNotMatter) {
  World world = WithALostPod();
  GetParam().change(world);
  EXPECT_EQ(Released(Plan(world.in)).size(), GetParam().released ? 1u : 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Releases, ReleaseTable,
    testing::Values(
        ReleaseCase{"NeverScheduled", true,
                    [](World& w) {
                      w.Pod(2).scheduled = false;
                      w.Pod(2).node.clear();
                    }},
        ReleaseCase{"NeverRegistered", true,
                    [](World& w) {
                      w.Pod(2).http.clear();
                      std::erase_if(w.in.sidecars,
                                    [](const SidecarFacts& s) { return s.pod_uid == "uid-2"; });
                    }},
        ReleaseCase{"RegisteredWithAFormerOperator", false,
                    [](World& w) {
                      std::erase_if(w.in.sidecars,
                                    [](const SidecarFacts& s) { return s.pod_uid == "uid-2"; });
                    }},
        ReleaseCase{"RegisteredButNotMarkedYet", false, [](World& w) { w.Pod(2).http.clear(); }},
        ReleaseCase{"AMemberThatNobodyHasHeardOf", false,
                    [](World& w) {
                      w.Members(2, {0, 1, 2}).Pod(2).http.clear();
                      std::erase_if(w.in.sidecars,
                                    [](const SidecarFacts& s) { return s.pod_uid == "uid-2"; });
                    }},
        ReleaseCase{"NotDeletedThoughItHasNoNode", false,
                    [](World& w) {
                      w.Pod(2).deleting = false;
                      w.Pod(2).scheduled = false;
                    }},
        ReleaseCase{"NotDeletedThoughItIsDead", false,
                    [](World& w) {
                      ProveDead(w, 2);
                      w.Pod(2).deleting = false;
                    }},
        ReleaseCase{"DrainedAndOutOfTheView", false,
                    [](World& w) {
                      w.Pod(2).drain_reason = "Requested";
                      w.Pod(2).drain_since = kNow;
                    }},
        ReleaseCase{"Suspended", false, [](World& w) { w.in.job.spec.run_policy.suspend = true; }},
        ReleaseCase{"PhaseFailed", false, [](World& w) { w.Pod(2).phase = PodPhase::kFailed; }},
        ReleaseCase{"NotOurs", false,
                    [](World& w) {
                      ProveDead(w, 2);
                      w.Pod(2).has_finalizer = false;
                    }}),
    [](const auto& info) { return info.param.name; });

TEST(ReleaseTest, WithTheEndOfTheJobAllAreReleasedOnceTheStatusSaysSo) {
  World world = WithALostPod();
  for (const int i : {0, 1}) world.End(i, PodPhase::kSucceeded, 0);
  world.in.job.status.finished_epoch = world.in.view->epoch;
  Decision out = Plan(world.in);
  ASSERT_TRUE(out.status.Is("Succeeded"));
  EXPECT_THAT(Released(out), IsEmpty()) << "success is read from the pods until it is written";
  world.in.job.status = out.status;
  out = Plan(world.in);
  EXPECT_EQ(Released(out).size(), 3u);
  EXPECT_THAT(out.status.proven_dead, IsEmpty());
}

TEST(ReleaseTest, WithTheFailureOfTheJobAllAreReleasedAndWhatIsKeptIsNotDeleted) {
  World world = WithALostPod();
  world.End(1, PodPhase::kFailed, 1).Settle();
  ASSERT_TRUE(world.in.job.status.Is("Failed"));
  ProveDead(world, 0);  // with its node, so no kubelet has reported its end
  const Decision out = Plan(world.in);
  EXPECT_EQ(Released(out).size(), 3u);
  for (const PodRelease& release : out.releases) EXPECT_FALSE(release.at_once) << release.name;
  EXPECT_THAT(out.annotations, IsEmpty()) << "nobody asks for a proof any more";
}

// The pod may become a member at this moment, so the one that was observed must be unchanged.
TEST(ReleaseTest, WhatMayHaveChangedSinceIsReleasedOnlyAsItWasSeen) {
  World never = WithALostPod();
  never.Pod(2).http.clear();
  std::erase_if(never.in.sidecars, [](const SidecarFacts& s) { return s.pod_uid == "uid-2"; });
  never.Pod(2).version = "17";
  EXPECT_EQ(Plan(never.in).releases.at(0).as_seen, "17");
  World dead = WithALostPod();
  ProveDead(dead, 2);
  EXPECT_EQ(Plan(dead.in).releases.at(0).as_seen, "") << "it stays dead";
}

TEST(ReleaseTest, APodThatNeverHadANodeIsNotForcedAway) {
  World world = WithALostPod();
  world.Pod(2).scheduled = false;
  world.Pod(2).node.clear();
  EXPECT_FALSE(Plan(world.in).releases.at(0).at_once);
}

TEST(ReleaseTest, PodsThatNobodyDeletesAreNotWatchedForIt) {
  World world = World::Training(2);
  for (PodFacts& pod : world.in.pods) {
    pod.has_finalizer = true;
    pod.http = "10.0.0.1:80";
  }
  EXPECT_FALSE(Plan(world.in).look_again);
}

TEST(ReleaseTest, AMemberWhoseDeathIsProvenIsNotWaitedFor) {
  World world = WithALostPod();
  world.Members(3, {0, 1, 2});
  ProveDead(world, 2);
  world.in.now += seconds(3600);
  const Decision out = Plan(world.in);
  EXPECT_THAT(Warnings(out, "WaitingForProofOfDeath"), IsEmpty());
}

TEST(ReleaseTest, ProofsOfMembersAloneAreKeptAndOnce) {
  World world = WithALostPod();
  ProveDead(world, 2);
  EXPECT_THAT(Plan(world.in).status.proven_dead, IsEmpty()) << "it is in no view";
  world.Members(3, {0, 1, 2}).Settle();
  EXPECT_THAT(Plan(world.in).status.proven_dead, ElementsAre("uid-2"));
}

TEST(ReleaseTest, TheKubeletsProofStaysWhereTheKubeletWroteIt) {
  World world = WithALostPod();
  ProveDead(world, 2);
  world.Pod(2).all_terminated = true;
  EXPECT_THAT(Plan(world.in).annotations, IsEmpty());
}

}  // namespace
}  // namespace ringmaster::planner
