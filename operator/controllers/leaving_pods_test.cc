#include "operator/controllers/leaving_pods.h"

#include <gtest/gtest.h>

#include "operator/api/labels.h"
#include "operator/api/time.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using std::chrono::seconds;

const scheduler::Moment kNow = *api::ParseTime("2026-01-31T12:00:00Z");

Json Deleted(seconds ago, int grace) {
  return {{"metadata",
           {{"uid", "p"},
            {"deletionTimestamp", api::FormatTime(kNow - ago)},
            {"deletionGracePeriodSeconds", grace}}}};
}

TEST(LeavingPodsTest, AServersClockThatIsBehindMakesNoPodLate) {
  LeavingPods pods;
  EXPECT_EQ(pods.By(Deleted(seconds(100), 30), kNow), kNow + seconds(30));
  EXPECT_EQ(pods.By(Deleted(seconds(100), 30), kNow + seconds(20)), kNow + seconds(30))
      << "seen again, and the time runs on";
}

TEST(LeavingPodsTest, WhoIsDeletedAfterItWasToldToLeaveHasItsTimeAnew) {
  LeavingPods pods;
  const Json told = {
      {"metadata",
       {{"uid", "p"},
        {"annotations",
         {{api::kDrainAnnotation, "try"}, {api::kDrainSinceAnnotation, api::FormatTime(kNow)}}}}},
      {"spec", {{"terminationGracePeriodSeconds", 50}}}};
  EXPECT_EQ(pods.By(told, kNow), kNow + seconds(50));
  EXPECT_EQ(pods.By(Deleted(seconds(0), 30), kNow + seconds(40)), kNow + seconds(70));
}

TEST(LeavingPodsTest, WhoStaysHasNoTime) {
  LeavingPods pods;
  EXPECT_EQ(pods.By({{"metadata", {{"uid", "p"}}}}, kNow), std::nullopt);
}

}  // namespace
}  // namespace ringmaster::controllers
