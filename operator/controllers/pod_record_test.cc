#include "operator/controllers/pod_record.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

class PodRecordTest : public testing::PartsTest {
 protected:
  std::vector<planner::PodFacts> Cached() {
    return PodsOf(job_, pods_.Indexed("default", job_.Key()));
  }
  PodRecord Record(const Json& changes) { return ReadPodRecord(MakePod(0, changes, false)); }
};

TEST_F(PodRecordTest, WhatChangesOfAPodIsReadAnew) {
  MakePod(0);
  MakePod(1);
  ASSERT_EQ(Cached().size(), 2u);
  const auto changed =
      api_->Patch(kube::Pods(), "default", "digits-worker-1",
                  {{"metadata", {{"annotations", {{api::kDrainAnnotation, "NodeCordoned"}}}}}}, {});
  ASSERT_TRUE(changed);
  EXPECT_EQ(Cached()[1].drain_reason, "") << "the cache has not seen it";
  pods_.Observe(*changed);
  const auto pods = Cached();
  ASSERT_EQ(pods.size(), 2u);
  EXPECT_EQ(pods[0].drain_reason, "");
  EXPECT_EQ(pods[1].drain_reason, "NodeCordoned");
}

TEST_F(PodRecordTest, ADeletionThatTheServerHasAcceptedIsReadToo) {
  const Json pod = MakePod(0);
  ASSERT_FALSE(Cached()[0].deleting);
  pods_.ObserveDeletion(pod, "2026-01-01T00:00:00Z");
  EXPECT_TRUE(Cached()[0].deleting);
}

TEST_F(PodRecordTest, AnotherJobOfTheNameHasNoneOfThem) {
  MakePod(0);
  ASSERT_EQ(Cached().size(), 1u);
  job_.uid = "another";
  EXPECT_TRUE(Cached().empty());
}

TEST_F(PodRecordTest, APodWithoutItsLabelsIsStillOneOfItsOwner) {
  MakePod(3, {{"metadata", {{"labels", nullptr}}}});
  const auto pods = Cached();
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods[0].index, 3);
}

TEST_F(PodRecordTest, APodIsLabelledWithAllLabelsOfItsOwner) {
  const PodRecord whole = Record(Json::object());
  EXPECT_EQ(whole.owner, job_.uid);
  EXPECT_TRUE(whole.is_labelled);
  ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "digits-worker-0", {}));
  const Json labels = LabelsOf(job_, 0);
  for (const auto& label : labels.items()) {
    for (const Json& value : {Json(), Json("other")}) {
      const PodRecord record = Record({{"metadata", {{"labels", {{label.key(), value}}}}}});
      EXPECT_FALSE(record.is_labelled) << label.key() << " " << value;
      ASSERT_TRUE(api_->Delete(kube::Pods(), "default", "digits-worker-0", {}));
    }
  }
}

TEST_F(PodRecordTest, NothingHasAnEmptyUid) {
  const PodRecord nobodys = Record({{"metadata", {{"ownerReferences", Json::array()}}}});
  EXPECT_FALSE(IsOwnedBy(nobodys, ""));
  EXPECT_FALSE(IsOwnedBy(nobodys, job_.uid));
}

TEST_F(PodRecordTest, WhoOnlyOwnsAPodDoesNotControlIt) {
  Json owner = OwnerReference(job_.name, job_.uid);
  owner["controller"] = false;
  const PodRecord record = Record({{"metadata", {{"ownerReferences", Json::array({owner})}}}});
  EXPECT_EQ(record.owner, "");
  EXPECT_FALSE(record.is_labelled);
}

}  // namespace
}  // namespace ringmaster::controllers
