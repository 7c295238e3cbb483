#include "operator/controllers/pod_reader.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

class PodReaderTest : public testing::PartsTest {
 protected:
  std::vector<runtime::ObjectPtr> Cached() { return pods_.Indexed("default", job_.Key()); }
  PodReader reader_;
};

TEST_F(PodReaderTest, WhatChangesOfAPodIsReadAnew) {
  MakePod(0);
  MakePod(1);
  ASSERT_EQ(reader_.Read(job_, Cached()).size(), 2u);
  const auto changed =
      api_->Patch(kube::Pods(), "default", "digits-worker-1",
                  {{"metadata", {{"annotations", {{api::kDrainAnnotation, "NodeCordoned"}}}}}}, {});
  ASSERT_TRUE(changed);
  EXPECT_EQ(reader_.Read(job_, Cached())[1].drain_reason, "") << "the cache has not seen it";
  pods_.Observe(*changed);
  const auto pods = reader_.Read(job_, Cached());
  ASSERT_EQ(pods.size(), 2u);
  EXPECT_EQ(pods[0].drain_reason, "");
  EXPECT_EQ(pods[1].drain_reason, "NodeCordoned");
}

TEST_F(PodReaderTest, OfAPodOnlyItsObjectIsKept) {
  MakePod(0);
  auto pods = reader_.Read(job_, Cached());
  ASSERT_EQ(pods.size(), 1u);
  pods[0].proven_dead = true;  // as a look does when the node proves it
  pods[0].unstartable.reason = "VolumeNotMounted";
  const auto again = reader_.Read(job_, Cached());
  ASSERT_EQ(again.size(), 1u);
  EXPECT_FALSE(again[0].proven_dead || again[0].unstartable);
}

// Objects are let go of with the cache.
TEST_F(PodReaderTest, NothingIsKeptOfAPodThatHasGoneOrOfAForgottenJob) {
  MakePod(0);
  MakePod(1);
  auto cached = Cached();
  (void)reader_.Read(job_, cached);
  const std::weak_ptr<const kube::Json> stays = cached[0], goes = cached[1];
  pods_.Take({kube::WatchEvent::Type::kDeleted, *cached[1]});
  cached = Cached();
  (void)reader_.Read(job_, cached);
  EXPECT_TRUE(goes.expired());
  pods_.Take({kube::WatchEvent::Type::kDeleted, *cached[0]});
  cached.clear();
  EXPECT_FALSE(stays.expired()) << "it was read, and may be asked for again";
  reader_.Forget(job_.Key());
  EXPECT_TRUE(stays.expired());
}

TEST_F(PodReaderTest, AnotherJobOfTheNameHasNoneOfThem) {
  MakePod(0);
  ASSERT_EQ(reader_.Read(job_, Cached()).size(), 1u);
  job_.uid = "another";
  EXPECT_TRUE(reader_.Read(job_, Cached()).empty());
}

}  // namespace
}  // namespace ringmaster::controllers
