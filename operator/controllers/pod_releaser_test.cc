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
  static constexpr int kAtOnce = 3;
  PodReleaser releaser_{api_, &jobs_, &pods_, kAtOnce};
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
  PodReleaser behind(api_, &empty, &pods_, kAtOnce);
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

TEST_F(PodReleaserTest, SeveralCallsAreMadeAtTheSameTime) {
  for (int i = 0; i < 6; ++i) Held(i, {{"metadata", {{"ownerReferences", Json::array()}}}});
  for (int i = 6; i < 12; ++i) Held(i);
  const auto rounds = [&](const auto& release) {
    api_->pods_at_once.Expect(kAtOnce);
    EXPECT_TRUE(release());
    EXPECT_EQ(api_->pods_at_once.most(), kAtOnce);
    const int rounds = api_->pods_at_once.rounds();
    api_->pods_at_once.Expect(0);
    return rounds;
  };
  EXPECT_EQ(rounds([&] { return releaser_.ReleaseOrphans("default/digits"); }), 2);
  Json job = object_;
  EXPECT_EQ(rounds([&] { return releaser_.ReleaseDeletedJob("default/digits", job); }), 2);
  for (int i = 0; i < 12; ++i) EXPECT_FALSE(HasFinalizer(Pod(i))) << i;
  job["metadata"]["finalizers"] = {"foregroundDeletion"};
  EXPECT_EQ(rounds([&] { return releaser_.ReleaseDeletedJob("default/digits", job); }), 4)
      << "deletions, too";
  for (int i = 6; i < 12; ++i) EXPECT_TRUE(Pod(i).is_null()) << i;
}

TEST_F(PodReleaserTest, AfterARefusalTheOthersAreAskedForAndTheJobComesBack) {
  for (int i = 0; i < 5; ++i) Held(i);
  Json job = object_;
  job["metadata"]["finalizers"] = {"foregroundDeletion"};
  for (const char* verb : {"patch", "delete"}) {
    api_->refusals = 0;
    api_->refused_verb = verb;
    EXPECT_FALSE(releaser_.ReleaseDeletedJob("default/digits", job)) << verb;
    EXPECT_EQ(api_->refusals, 5) << verb;
  }
}

}  // namespace
}  // namespace ringmaster::controllers
