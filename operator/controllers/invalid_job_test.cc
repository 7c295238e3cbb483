// A job that can't be read: what is said of it, and what becomes of its pods.
#include "operator/controllers/finalizers.h"
#include "operator/controllers/job_controller.h"
#include "operator/controllers/testing/calls_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using support::Until;
using testing::Call;
using testing::JobControllerCallsTest;

// An API server whose schema allows what the parser refuses.
class InvalidJobTest : public JobControllerCallsTest {
 protected:
  InvalidJobTest() : JobControllerCallsTest("") {}
};

TEST_F(InvalidJobTest, IsRefusedOnceForEachChange) {
  Apply("digits", {{"worker", {{"template", {{"spec", {{"nodeSelector", 3}}}}}}}});
  ASSERT_TRUE(Until([&] { return Status().state == "Invalid"; }));
  const std::uint64_t adds = controller_->state().queue.adds;
  ASSERT_TRUE(api_->Patch(kube::HorovodJobs(), "default", "digits",
                          {{"metadata", {{"annotations", {{"a", "b"}}}}}}, {}));
  ASSERT_TRUE(Until([&] {
    const auto queue = controller_->state().queue;
    return queue.adds > adds && queue.depth == 0;
  }));
  EXPECT_EQ(api_->Calls("update", "horovodjobs").size(), 1u);
  Change({{"worker", {{"replicas", 3}}}});
  EXPECT_TRUE(Until([&] { return Status().observed_generation == 2; }));
}

TEST_F(InvalidJobTest, IsSaidToBeSoOnceThatCouldBeWritten) {
  std::atomic<int> tries = 0;
  api_->SetRefuse([&](const Call& call) -> std::optional<ErrorCode> {
    const bool says = call.verb == "update" && call.resource == "horovodjobs";
    return says && ++tries <= 5 ? std::optional(ErrorCode::kUnavailable) : std::nullopt;
  });
  Apply("digits", {{"worker", {{"template", {{"spec", {{"nodeSelector", 3}}}}}}}});
  EXPECT_TRUE(Until([&] { return Status().state == "Invalid"; }));
  EXPECT_TRUE(Until([&] { return !api_->Calls("create", "events").empty(); }));
  EXPECT_EQ(api_->Calls("create", "events").size(), 1u);
  controller_->Stop();
}

TEST_F(InvalidJobTest, HoldsNoPodsThatItNeverRanNorAnyOnceItIsDeleted) {
  const Json invalid = {{"worker", {{"template", {{"spec", {{"nodeSelector", 3}}}}}}}};
  const std::string uid = runtime::MetaField(Apply("digits", invalid), "uid");
  for (const char* pod : {"digits-worker-7", "digits-worker-8", "digits-worker-9"}) {
    Json stranger = Stranger(pod, "digits", uid);
    if (pod == std::string("digits-worker-8")) stranger["spec"]["nodeName"] = "n";
    ASSERT_TRUE(api_->Create(kube::Pods(), "default", stranger));
  }
  for (const char* pod : {"digits-worker-7", "digits-worker-8"}) {
    ASSERT_TRUE(api_->Delete(kube::Pods(), "default", pod, {.grace_period_seconds = 0}));
  }
  ASSERT_TRUE(Until([&] { return Get(kube::Pods(), "digits-worker-7").is_null(); }));
  EXPECT_TRUE(HasFinalizer(Get(kube::Pods(), "digits-worker-8"))) << "it may run";
  EXPECT_TRUE(HasFinalizer(Get(kube::Pods(), "digits-worker-9"))) << "nobody deletes it";
  ASSERT_TRUE(
      api_->Delete(kube::HorovodJobs(), "default", "digits", {.propagation = "Foreground"}));
  EXPECT_TRUE(Until([&] { return Get(kube::HorovodJobs(), "digits").is_null(); }));
}

}  // namespace
}  // namespace ringmaster::controllers
