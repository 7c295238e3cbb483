#include "operator/controllers/job_observer.h"

#include "operator/controllers/quorum_record_store.h"
#include "operator/controllers/sidecar_report.h"
#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using ::testing::ElementsAre;

class JobObserverTest : public testing::PartsTest {
 protected:
  static std::vector<std::string> Names(const planner::Snapshot& snapshot) {
    std::vector<std::string> names;
    for (const planner::PodFacts& pod : snapshot.pods) names.push_back(pod.name);
    return names;
  }
  QuorumRecordStore records_{api_};
  JobObserver observer_{api_, {&registry_, &records_, &pods_, &nodes_}, &queue_, {{"key"}}};
};

TEST_F(JobObserverTest, ItsPodsAreThoseThatTheJobOwnsByIndex) {
  MakePod(1);
  MakePod(0);
  MakePod(2, {{"metadata", {{"ownerReferences", nullptr}}}});
  const auto snapshot = observer_.Observe(job_);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_THAT(Names(*snapshot), ElementsAre("digits-worker-0", "digits-worker-1"));
  EXPECT_EQ(snapshot->view, nullptr);
  EXPECT_EQ(snapshot->lineage, 0u);
  EXPECT_THAT(snapshot->disruption_taints, ElementsAre("key"));
}

// Otherwise a replacement with the same name would be created.
TEST_F(JobObserverTest, APodThatHasJustLostItsLabelsIsCountedByItsName) {
  MakePod(0, {{"metadata", {{"labels", {{api::kReplicaIndexLabel, nullptr}}}}}});
  MakePod(1);
  const auto snapshot = observer_.Observe(job_);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_THAT(Names(*snapshot), ElementsAre("digits-worker-0", "digits-worker-1"));
}

TEST_F(JobObserverTest, TheNewerOfRecordAndSidecarsIsTheView) {
  membership::Candidate candidate;
  candidate.pod.uid = "a";
  candidate.workers = {{.slot = 0, .incarnation = 1, .tcp = "t", .shm = "", .ready = true}};
  const auto first =
      std::make_shared<const membership::View>(membership::BootstrapView({candidate}, 1));
  ASSERT_TRUE(records_.Bootstrap(job_, first));
  auto snapshot = observer_.Observe(job_);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  ASSERT_NE(snapshot->view, nullptr);
  EXPECT_EQ(snapshot->view->epoch, first->epoch);
  EXPECT_EQ(snapshot->lineage, membership::EpochLineage(first->epoch));
  auto next = *first;
  ++next.epoch;
  const auto id = registry_.Connect({.job_namespace = "default",
                                     .job_name = "digits",
                                     .job_uid = job_.uid,
                                     .pod_name = "digits-worker-0",
                                     .pod_uid = "a"},
                                    nullptr);
  registry_.Take(id,
                 ViewReport::Whole(std::make_shared<const membership::View>(next), std::nullopt));
  snapshot = observer_.Observe(job_);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->view->epoch, next.epoch);
  EXPECT_EQ(snapshot->sidecars.size(), 1u);
}

TEST_F(JobObserverTest, ARecordThatCantBeReadIsAnError) {
  ASSERT_TRUE(api_->Create(kube::ConfigMaps(), "default",
                           {{"metadata", {{"name", RecordName("digits")}}}, {"data", {}}}));
  EXPECT_FALSE(observer_.Observe(job_));
}

TEST_F(JobObserverTest, ListedPodsAreTheServers) {
  MakePod(0);
  const auto snapshot = observer_.Observe(job_);
  ASSERT_TRUE(snapshot);
  MakePod(1, Json::object(), false);
  const auto listed = observer_.WithListedPods(*snapshot);
  ASSERT_TRUE(listed);
  EXPECT_THAT(Names(*listed), ElementsAre("digits-worker-0", "digits-worker-1"));
  api_->refused_verb = "list";
  EXPECT_FALSE(observer_.WithListedPods(*snapshot));
}

// A node whose clock is wrong must not begin a pod's timeouts before its start.
TEST_F(JobObserverTest, WhenAWorkerBeganToRunIsWhenThatWasSeen) {
  MakePod(0);
  ASSERT_EQ(observer_.Observe(job_)->pods.front().running_since, std::nullopt);
  Json pod = *pods_.Get("default", "digits-worker-0");
  pod["status"] = {
      {"phase", "Running"},
      {"containerStatuses",
       {{{"name", "worker"}, {"state", {{"running", {{"startedAt", "2001-01-01T00:00:00Z"}}}}}}}}};
  pod["metadata"].erase("resourceVersion");
  pods_.Observe(pod);
  const auto snapshot = observer_.Observe(job_);
  EXPECT_EQ(snapshot->pods.front().running_since, snapshot->now);
  EXPECT_EQ(observer_.Observe(job_)->pods.front().running_since, snapshot->now);
}

}  // namespace
}  // namespace ringmaster::controllers
