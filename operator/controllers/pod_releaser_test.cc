#include "operator/controllers/pod_releaser.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using runtime::MetaField;

class PodReleaserTest : public testing::PartsTest {
 protected:
  Json Held(int index, const Json& changes = Json::object()) {
    Json all = {{"metadata", {{"finalizers", {api::kProofFinalizer}}}}};
    all.merge_patch(changes);
    return MakePod(index, all);
  }
  PodReleaser releaser_{api_, &jobs_, &pods_};
};

TEST_F(PodReleaserTest, APodOfAFormerJobGoesAndOneOfThisJobStays) {
  Held(0);
  Held(1, {{"metadata",
            {{"ownerReferences", Json::array({OwnerReference("digits", "former-uid")})}}}});
  EXPECT_TRUE(releaser_.ReleaseOrphans("default/digits"));
  EXPECT_TRUE(HasFinalizer(Pod(0)));
  EXPECT_FALSE(HasFinalizer(Pod(1)));
}

TEST_F(PodReleaserTest, AYoungJobThatTheCacheLacksKeepsItsPods) {
  Held(0);
  runtime::Informer empty(api_, kube::HorovodJobs(), {}, [](const Json&, bool) {});
  PodReleaser behind(api_, &empty, &pods_);
  EXPECT_TRUE(behind.ReleaseOrphans("default/digits"));
  EXPECT_TRUE(HasFinalizer(Pod(0)));
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), "default", "digits", {}));
  EXPECT_TRUE(behind.ReleaseOrphans("default/digits"));
  EXPECT_FALSE(HasFinalizer(Pod(0)));
}

TEST_F(PodReleaserTest, ADeletedJobsPodsGoAndLateOnesAreDeleted) {
  Held(0);
  Json job = object_;
  EXPECT_TRUE(releaser_.ReleaseDeletedJob("default/digits", job));
  EXPECT_FALSE(HasFinalizer(Pod(0)));
  EXPECT_FALSE(Pod(0).is_null()) << "the garbage collector's";
  job["metadata"]["finalizers"] = {"foregroundDeletion"};
  Held(1);
  EXPECT_TRUE(releaser_.ReleaseDeletedJob("default/digits", job));
  EXPECT_TRUE(Pod(1).is_null() || !MetaField(Pod(1), "deletionTimestamp").empty());
}

TEST_F(PodReleaserTest, OfAJobThatCantBeReadOnlyTheDeadGo) {
  Held(0);
  EXPECT_TRUE(releaser_.ReleaseUnreadableJob("default/digits", job_.uid, false));
  EXPECT_TRUE(HasFinalizer(Pod(0)));
  EXPECT_TRUE(releaser_.ReleaseUnreadableJob("default/digits", job_.uid, true));
  EXPECT_FALSE(HasFinalizer(Pod(0)));
}

}  // namespace
}  // namespace ringmaster::controllers
