#include "operator/controllers/gang_admission.h"

#include "operator/controllers/pod_facts.h"
#include "operator/controllers/testing/parts_fixture.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

class GangAdmissionTest : public testing::PartsTest {
 protected:
  ~GangAdmissionTest() override { capacity_.Stop(); }
  // Two pods that want a CPU each, before a node that has so many.
  void Start(int cpus) {
    ASSERT_TRUE(api_->Create(
        kube::Nodes(), "",
        {{"metadata", {{"name", "a"}}},
         {"status", {{"allocatable", {{"cpu", std::to_string(cpus)}, {"pods", "10"}}}}}}));
    for (const int index : {0, 1}) {
      MakePod(index, Json::parse(R"({"spec": {"schedulingGates": [{"name": "ringmaster.dev/gang"}],
        "containers": [{"name": "worker", "image": "i",
                        "resources": {"requests": {"cpu": "1"}}}]}})"));
    }
    capacity_.Start();
    for (const runtime::Informer* cache : capacity_.Caches()) {
      ASSERT_TRUE(support::Until([&] { return cache->state().synced; }));
    }
    snapshot_.job = job_;
    snapshot_.job.spec.elastic_policy.min_replicas = 2;
    snapshot_.now = std::chrono::system_clock::now();
    for (const int index : {0, 1}) snapshot_.pods.push_back(ReadPod(Pod(index)));
  }
  int Gated() {
    int gated = 0;
    for (const int index : {0, 1}) gated += ReadPod(Pod(index)).gated ? 1 : 0;
    return gated;
  }

  CapacityCache capacity_{api_};
  PodWriter counted_{api_, {&pods_, &capacity_}, &queue_, &backoff_, &events_, {}};
  GangAdmission admission_{&capacity_, &pods_, &counted_};
  planner::Snapshot snapshot_;
};

TEST_F(GangAdmissionTest, WhatFitsTogetherMayStart) {
  ASSERT_NO_FATAL_FAILURE(Start(2));
  const auto planned = admission_.PlanAndAdmit(&snapshot_);
  EXPECT_TRUE(planned.admitted);
  EXPECT_EQ(planned.decision.admits.size(), 2u);
  EXPECT_EQ(snapshot_.gang_fit->fit, 2);
  EXPECT_EQ(Gated(), 0);
}

TEST_F(GangAdmissionTest, HalfAGangDoesNot) {
  ASSERT_NO_FATAL_FAILURE(Start(1));
  EXPECT_TRUE(admission_.PlanAndAdmit(&snapshot_).decision.admits.empty());
  EXPECT_EQ(snapshot_.gang_fit->fit, 1);
  EXPECT_EQ(Gated(), 2);
}

TEST_F(GangAdmissionTest, WhereNobodyCountsTheGatesOfAnEarlierOperatorGo) {
  ASSERT_NO_FATAL_FAILURE(Start(1));
  GangAdmission none(nullptr, &pods_, &counted_);
  EXPECT_TRUE(none.PlanAndAdmit(&snapshot_).admitted);
  EXPECT_FALSE(snapshot_.gang_fit.has_value());
  EXPECT_EQ(Gated(), 0);
}

TEST_F(GangAdmissionTest, AGateThatCantBeTakenOffComesBack) {
  ASSERT_NO_FATAL_FAILURE(Start(2));
  api_->refused_verb = "patch";
  EXPECT_FALSE(admission_.PlanAndAdmit(&snapshot_).admitted);
  EXPECT_EQ(Gated(), 2);
}

}  // namespace
}  // namespace ringmaster::controllers
