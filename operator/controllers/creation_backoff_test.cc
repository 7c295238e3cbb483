#include "operator/controllers/creation_backoff.h"

#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CreationBackoffTest : public testing::PartsTest {
 protected:
  const kube::Error forbidden_ = {.code = kube::ErrorCode::kForbidden, .message = "no"};
};

TEST_F(CreationBackoffTest, WhatFailedWaitsAndBringsTheJobBack) {
  EXPECT_FALSE(backoff_.Waits(job_, Needed::kPods));
  EXPECT_EQ(queue_.size(), 0u);
  backoff_.FailedWithEvent(job_, Needed::kPods, forbidden_, "FailedCreate");
  EXPECT_TRUE(backoff_.Waits(job_, Needed::kPods));
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_FALSE(backoff_.Waits(job_, Needed::kRecord)) << "each need waits by itself";
  EXPECT_THAT(EventReasons(), ElementsAre("FailedCreate"));
  backoff_.Worked(job_, Needed::kPods);
  EXPECT_FALSE(backoff_.Waits(job_, Needed::kPods));
}

TEST_F(CreationBackoffTest, InANamespaceThatIsBeingDeletedThereIsNoEvent) {
  kube::Error ends = forbidden_;
  ends.message = "unable to create new content because it is being terminated";
  backoff_.FailedWithEvent(job_, Needed::kPods, ends, "FailedCreate");
  EXPECT_TRUE(backoff_.Waits(job_, Needed::kPods));
  EXPECT_THAT(EventReasons(), IsEmpty());
}

TEST_F(CreationBackoffTest, AForgottenJobStartsAnew) {
  backoff_.Failed(job_, Needed::kPods, forbidden_);
  EXPECT_TRUE(backoff_.Waits(job_, Needed::kPods));
  backoff_.Forget(job_.uid);
  EXPECT_FALSE(backoff_.Waits(job_, Needed::kPods));
}

}  // namespace
}  // namespace ringmaster::controllers
