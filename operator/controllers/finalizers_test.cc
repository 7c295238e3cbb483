// Removes the finalizer while other clients write or delete the pod.
#include "operator/controllers/finalizers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "operator/api/labels.h"
#include "operator/controllers/testing/parts_fixture.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "operator/planner/planner.h"
#include "operator/planner/proof.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;

class PatchedApi : public local::InMemoryApi {
 public:
  using InMemoryApi::InMemoryApi;
  kube::Result<Json> Patch(const kube::Resource& resource, const std::string& ns,
                           const std::string& name, const Json& patch,
                           const kube::PatchOptions& options) override {
    ++patches;
    if (refusal && (refused.empty() || refused == name)) return tl::unexpected(*refusal);
    return InMemoryApi::Patch(resource, ns, name, patch, options);
  }
  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    if (away) {
      return tl::unexpected(kube::Error{.code = ErrorCode::kUnavailable, .message = "away"});
    }
    return InMemoryApi::Get(resource, ns, name);
  }
  std::atomic<int> patches = 0;
  bool away = false;  // for reads
  std::optional<kube::Error> refusal;
  std::string refused;  // the pod; empty: every one
};

class FinalizerTest : public ::testing::Test {
 protected:
  Json Make(const std::string& name = "p", const std::string& role = "worker",
            const std::string& finalizer = api::kProofFinalizer) {
    const Json pod = {
        {"metadata",
         {{"name", name}, {"labels", {{api::kJobRoleLabel, role}}}, {"finalizers", {finalizer}}}},
        {"spec", {{"containers", {{{"name", "worker"}, {"image", "i"}}}}}}};
    const auto made = api_.Create(kube::Pods(), "default", pod);
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }
  Json Get(const std::string& name = "p") {
    const auto pod = api_.Get(kube::Pods(), "default", name);
    return pod ? *pod : Json();
  }
  void Clear() {
    ASSERT_TRUE(api_.Patch(kube::Pods(), "default", "p",
                           {{"metadata", {{"finalizers", Json::array()}}}}, {}));
    ASSERT_TRUE(api_.Delete(kube::Pods(), "default", "p", {.grace_period_seconds = 0}));
    api_.patches = 0;
  }
  PatchedApi api_{std::make_shared<local::Store>(local::StoreOptions{})};
};

TEST_F(FinalizerTest, WhatAnotherHasAddedMeanwhileStays) {
  const Json stale = Make();
  ASSERT_TRUE(
      api_.Patch(kube::Pods(), "default", "p",
                 {{"metadata", {{"finalizers", {api::kProofFinalizer, "example.com/mine"}}}}}, {}));
  ASSERT_TRUE(RemoveFinalizer(api_, stale));
  EXPECT_EQ(Get()["metadata"]["finalizers"], Json::array({"example.com/mine"}));
}

TEST_F(FinalizerTest, OfAPodAsItWasSeenItComesOffOnlyIfNobodyHasWrittenItSince) {
  const Json stale = Make();
  ASSERT_TRUE(api_.Patch(kube::Pods(), "default", "p",
                         {{"metadata", {{"annotations", {{"a", "b"}}}}}}, {}));
  api_.patches = 0;
  const auto removed = RemoveFinalizer(api_, stale, /*as_seen=*/true);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ErrorCode::kConflict);
  EXPECT_EQ(api_.patches, 1);
  EXPECT_TRUE(HasFinalizer(Get()));
  EXPECT_TRUE(RemoveFinalizer(api_, Get(), /*as_seen=*/true));
  EXPECT_FALSE(HasFinalizer(Get()));
}

TEST_F(FinalizerTest, ASuccessorOfTheSameNameKeepsItsOwn) {
  const Json stale = Make();
  Clear();
  Make();
  const auto removed = RemoveFinalizer(api_, stale);
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(HasFinalizer(Get()));
}

TEST_F(FinalizerTest, APodThatIsGoneNeedsNothing) {
  const Json stale = Make();
  Clear();
  EXPECT_TRUE(RemoveFinalizer(api_, stale));
  api_.refusal = kube::Error{.code = ErrorCode::kConflict, .message = "another was quicker"};
  EXPECT_TRUE(RemoveFinalizer(api_, stale)) << "gone between the conflict and the look";
}

TEST_F(FinalizerTest, WhoDoesNotHaveItIsNotWritten) {
  EXPECT_TRUE(RemoveFinalizer(api_, Make("p", "worker", "example.com/mine")));
  EXPECT_EQ(api_.patches, 0);
}

TEST_F(FinalizerTest, AllWorkersAreClearedAndCountedAndNobodyElse) {
  Make("a");
  Make("b");
  Make("theirs", "worker", "example.com/mine");
  Make("no-worker", "launcher");
  const auto cleared = ClearFinalizers(api_, "default");
  ASSERT_TRUE(cleared) << cleared.error().message;
  EXPECT_EQ(*cleared, 2);
  EXPECT_FALSE(HasFinalizer(Get("a")) || HasFinalizer(Get("b")));
  EXPECT_EQ(Get("theirs")["metadata"]["finalizers"], Json::array({"example.com/mine"}));
  EXPECT_TRUE(HasFinalizer(Get("no-worker")));
}

TEST_F(FinalizerTest, WhereTheRaceIsAlwaysLostItIsGivenUp) {
  const Json pod = Make();
  api_.refusal = kube::Error{.code = ErrorCode::kConflict, .message = "another was quicker"};
  const auto removed = RemoveFinalizer(api_, pod);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ErrorCode::kConflict);
  EXPECT_EQ(api_.patches, 5);
}

TEST_F(FinalizerTest, APodThatCanNotBeReadAgainIsNotTakenForGone) {
  const Json pod = Make();
  api_.refusal = kube::Error{.code = ErrorCode::kConflict, .message = "another was quicker"};
  api_.away = true;
  EXPECT_EQ(RemoveFinalizer(api_, pod).error().code, ErrorCode::kUnavailable);
}

TEST_F(FinalizerTest, AllAreNotClearedWhereOneIsRefused) {
  Make();
  api_.refusal = kube::Error{.code = ErrorCode::kForbidden, .message = "not for you"};
  EXPECT_EQ(ClearFinalizers(api_, "default").error().code, ErrorCode::kForbidden);
}

TEST_F(FinalizerTest, OneThatIsRefusedKeepsNobodyElseFromBeingCleared) {
  for (const char* name : {"a", "b", "c"}) Make(name);
  api_.refusal = kube::Error{.code = ErrorCode::kForbidden, .message = "not for you"};
  api_.refused = "a";
  EXPECT_EQ(ClearFinalizers(api_, "default").error().message, "not for you");
  EXPECT_TRUE(HasFinalizer(Get("a")));
  EXPECT_FALSE(HasFinalizer(Get("b")) || HasFinalizer(Get("c")));
}

TEST(ClearFinalizersTest, SeveralPodsAreClearedAtTheSameTime) {
  testing::RefusingApi api{std::make_shared<local::Store>(local::StoreOptions{})};
  for (int i = 0; i < 6; ++i) {
    Json pod = {{"metadata",
                 {{"name", "p" + std::to_string(i)}, {"labels", {{api::kJobRoleLabel, "worker"}}}}},
                {"spec", {{"containers", {{{"name", "worker"}, {"image", "i"}}}}}}};
    AddFinalizer(pod);
    ASSERT_TRUE(api.Create(kube::Pods(), "default", pod));
  }
  api.pods_at_once.Expect(3);
  EXPECT_EQ(ClearFinalizers(api, "default", 3), 6);
  EXPECT_EQ(api.pods_at_once.most(), 3);
  EXPECT_EQ(api.pods_at_once.rounds(), 2);
}

TEST_F(FinalizerTest, WhatIsForbiddenIsNotTriedAgain) {
  const Json pod = Make();
  api_.refusal = kube::Error{.code = ErrorCode::kForbidden, .message = "not for you"};
  EXPECT_EQ(RemoveFinalizer(api_, pod).error().code, ErrorCode::kForbidden);
  EXPECT_EQ(api_.patches, 1);
}

TEST(AddFinalizerTest, TheFinalizerComesBesideThoseThatAreThere) {
  Json pod = Json::parse(R"({"metadata": {"finalizers": ["example.com/mine"]}})");
  EXPECT_FALSE(HasFinalizer(pod));
  AddFinalizer(pod);
  EXPECT_TRUE(HasFinalizer(pod));
  EXPECT_EQ(pod["metadata"]["finalizers"].size(), 2u);
}

}  // namespace
}  // namespace ringmaster::controllers
