#include "operator/kueue/queue_state.h"

#include <gmock/gmock.h>

#include <functional>

#include "operator/kueue/testing/workloads.h"

namespace ringmaster::kueue {
namespace {

using testing::AdmittedWith;
using testing::Evicted;
using ::testing::HasSubstr;
using testing::QueuedJob;
using testing::SetCondition;
using testing::Waiting;

QueueState Evaluate(const Json& workload) {
  const WorkloadFacts facts = ReadWorkload(workload);
  return QueueStateOf(QueuedJob(), &facts);
}

struct Case {
  const char* name;
  std::function<Json()> workload;
  Stage stage;
  const char* reason;
  const char* words;
};

class QueueStateTest : public ::testing::TestWithParam<Case> {};

TEST_P(QueueStateTest, IsWhatTheConditionsMean) {
  const QueueState state = Evaluate(GetParam().workload());
  EXPECT_EQ(state.stage, GetParam().stage);
  EXPECT_EQ(state.reason, GetParam().reason);
  EXPECT_THAT(state.message, HasSubstr("queue gpus: "));
  EXPECT_THAT(state.message, HasSubstr(GetParam().words));
}

Json WithCondition(Json workload, const char* type, bool on, const char* message = "words") {
  SetCondition(&workload, type, on, "Any", message);
  return workload;
}

Json With(Json workload, const char* pointer, const Json& value) {
  workload[Json::json_pointer(pointer)] = value;
  return workload;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, QueueStateTest,
    ::testing::Values(
        Case{"New", [] { return Waiting(QueuedJob()); }, Stage::kWaits, kWaitingForQueue,
             "not looked at"},
        Case{"NoRoom",
             [] { return WithCondition(Waiting(QueuedJob()), kQuotaReserved, false, "no gpus"); },
             Stage::kWaits, kWaitingForQueue, "no gpus"},
        Case{"Checks",
             [] {
               Json workload = AdmittedWith(QueuedJob(), 4);
               SetCondition(&workload, kAdmitted, false);
               return With(workload, "/status/admissionChecks",
                           {{{"name", "nodes"}, {"state", "Pending"}, {"message", "soon"}}});
             },
             Stage::kWaits, kWaitingForQueue, "nodes: Pending: soon"},
        Case{"Admitted", [] { return AdmittedWith(QueuedJob(), 4); }, Stage::kAdmitted, "",
             "4 of 4 pods are admitted by ClusterQueue cluster"},
        Case{"Evicted", [] { return Evicted(AdmittedWith(QueuedJob(), 4), "Preempted"); },
             Stage::kLeaves, kEvictedByQueue, "Preempted: for another one"},
        Case{"EvictedBeforeItWasAdmitted",
             [] {
               return Evicted(WithCondition(AdmittedWith(QueuedJob(), 4), kAdmitted, false),
                              "AdmissionCheck");
             },
             Stage::kLeaves, kEvictedByQueue, "AdmissionCheck"},
        Case{"Deactivated",
             [] { return With(AdmittedWith(QueuedJob(), 4), "/spec/active", false); },
             Stage::kLeaves, kEvictedByQueue, "spec.active is false"},
        Case{"DeactivatedAndOut",
             [] {
               return With(WithCondition(Waiting(QueuedJob()), kQuotaReserved, false),
                           "/spec/active", false);
             },
             Stage::kWaits, kWaitingForQueue, "spec.active is false"},
        Case{"TooFew", [] { return AdmittedWith(QueuedJob(), 1); }, Stage::kLeaves,
             kWaitingForQueue, "1 pods are admitted, and the job needs 2"},
        Case{"OtherQueue",
             [] { return With(AdmittedWith(QueuedJob(), 4), "/spec/queueName", "cpus"); },
             Stage::kLeaves, kWaitingForQueue, "of queue cpus"},
        Case{"Finished",
             [] { return WithCondition(AdmittedWith(QueuedJob(), 4), kFinished, true); },
             Stage::kLeaves, kWaitingForQueue, "no Workload"},
        Case{"Topology",
             [] {
               return With(AdmittedWith(QueuedJob(), 4),
                           "/status/admission/podSetAssignments/0/topologyAssignment",
                           Json::object());
             },
             Stage::kWaits, kAdmissionUnusable, "flavours without topologyName"}),
    [](const auto& info) { return info.param.name; });

TEST(QueueStateOfTest, AJobWithoutAWorkloadHasNoPods) {
  EXPECT_EQ(QueueStateOf(QueuedJob(), nullptr).stage, Stage::kLeaves);
}

TEST(QueueStateOfTest, WhatWasAdmittedBeforeASuspensionIsNotTheJobsAnyMore) {
  const auto stage_after = [](const std::string& reason) {
    api::HorovodJob job = QueuedJob();
    job.status.conditions.push_back({"Suspended", true, reason, "", "2026-01-31T11:00:00Z", 0});
    const WorkloadFacts facts = ReadWorkload(AdmittedWith(job, 4));
    return QueueStateOf(job, &facts).stage;
  };
  EXPECT_EQ(stage_after("Suspended"), Stage::kWaits);
  EXPECT_EQ(stage_after(kAdmissionGivenBack), Stage::kWaits);
  EXPECT_EQ(stage_after(kWaitingForQueue), Stage::kAdmitted) << "this one is new";
}

TEST(QueueStateOfTest, SinceWhenItIsEvictedIsKnown) {
  Json workload = Evicted(AdmittedWith(QueuedJob(), 4), "Preempted");
  for (Json& condition : workload["status"]["conditions"]) {
    condition["lastTransitionTime"] = "2026-01-31T12:00:00Z";
  }
  EXPECT_EQ(Evaluate(workload).evicted_at, api::ParseTime("2026-01-31T12:00:00Z"));
}

TEST(QueueStateOfTest, WhatIsNotNeededAnyMoreIsNotGranted) {
  const Json workload = With(AdmittedWith(QueuedJob(), 4), "/status/reclaimablePods",
                             {{{"name", kPodSet}, {"count", 1}}});
  EXPECT_EQ(Evaluate(workload).pods, 3);
}

}  // namespace
}  // namespace ringmaster::kueue
