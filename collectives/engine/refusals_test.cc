#include "collectives/engine/refusals.h"

#include <gtest/gtest.h>

#include <string>

namespace ringmaster::engine {
namespace {

std::string CurrentMessage(const Refusals& refusals) {
  const auto current = refusals.current();
  return current ? current->message() : "";
}

TEST(RefusalsTest, WhatIsFinalGoesBeforeARestAndThatBeforeADrop) {
  Refusals refusals;
  EXPECT_FALSE(refusals.current());
  refusals.Suspend("dropped");
  EXPECT_EQ(refusals.current()->code(), RM_ERR_DROPPED);
  EXPECT_EQ(CurrentMessage(refusals), "dropped");
  refusals.Rest({RM_ERR_SHUTDOWN, "rests"});
  EXPECT_EQ(CurrentMessage(refusals), "rests");
  refusals.Refuse({RM_ERR_LEFT, "drained"});
  EXPECT_EQ(CurrentMessage(refusals), "drained");
}

TEST(RefusalsTest, ADropAndARestEndEachByItself) {
  Refusals refusals;
  refusals.Suspend("dropped");
  refusals.Rest({RM_ERR_SHUTDOWN, "rests"});
  refusals.Resume();
  EXPECT_EQ(CurrentMessage(refusals), "rests") << "the view it is back in does not wake it";
  EXPECT_TRUE(refusals.rests());
  refusals.Suspend("dropped");
  refusals.Wake();
  EXPECT_EQ(CurrentMessage(refusals), "dropped");
  EXPECT_FALSE(refusals.rests());
  refusals.Resume();
  EXPECT_FALSE(refusals.current());
}

TEST(RefusalsTest, TheFirstFinalReasonCountsForEver) {
  Refusals refusals;
  EXPECT_FALSE(refusals.refused());
  refusals.Refuse({RM_ERR_LEFT, "drained"});
  refusals.Refuse({RM_ERR_SHUTDOWN, "shut down"});
  refusals.Resume();
  refusals.Wake();
  EXPECT_EQ(refusals.refused()->message(), "drained");
  EXPECT_EQ(CurrentMessage(refusals), "drained");
}

}  // namespace
}  // namespace ringmaster::engine
