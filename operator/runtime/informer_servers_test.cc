// The informer with each of the API servers: how it handles their lists and watches.
// (informer_test.cc scripts what a well-behaved server doesn't do.)
#include <gmock/gmock.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "operator/kube/testing/wrapped_api.h"
#include "operator/local/testing/conformance.h"
#include "operator/runtime/informer.h"
#include "tests/support/until.h"

namespace ringmaster::runtime {
namespace {

using kube::Json;
using support::Until;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Counts calls, ends watches early, and can make a watch lose its place.
class CountingApi : public kube::testing::WrappedApi {
 public:
  using WrappedApi::WrappedApi;
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    ++lists;
    if (!refused.empty() && ns == refused) {
      return tl::unexpected(
          kube::Error{.code = kube::ErrorCode::kForbidden, .message = "not for you"});
    }
    kube::ListOptions chunked = options;
    chunked.chunk = 3;
    return WrappedApi::ListAll(resource, ns, chunked);
  }
  kube::Result<void> Watch(const kube::Resource& resource, const std::string& ns,
                           const kube::WatchOptions& options, const kube::WatchHandler& on_event,
                           std::stop_token stop) override {
    kube::WatchOptions shorter = options;
    shorter.timeout = std::chrono::seconds(1);
    auto ended = WrappedApi::Watch(resource, ns, shorter, on_event, stop);
    ++watches;
    if (!lose_place.exchange(false)) return ended;
    return tl::unexpected(kube::Error{.code = kube::ErrorCode::kGone, .message = "too old"});
  }
  std::atomic<int> lists = 0, watches = 0;
  std::atomic<bool> lose_place = false;
  std::string refused;  // lists of this namespace, set before the informer starts
};

class InformerServersTest : public local::testing::OnEveryServer {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnEveryServer::SetUp());
    counted_ = std::make_shared<CountingApi>(api_);
  }
  void TearDown() override {
    if (informer_ != nullptr) informer_->Stop();
  }

  void Start(InformerOptions options = {}) {
    if (options.namespaces.empty()) options.namespaces = {ns_};
    options.label_selector = "kept=yes";
    options.relist_backoff = std::chrono::milliseconds(1);
    informer_ = std::make_unique<Informer>(
        counted_, kube::ConfigMaps(), options, [this](const Json& object, bool deleted) {
          const std::lock_guard lock(mu_);
          told_.push_back((deleted ? "-" : "") + MetaField(object, "name"));
        });
    informer_->Start();
    ASSERT_TRUE(informer_->WaitForSync(support::kPatience)) << informer_->LastError();
  }
  Json Make(const std::string& name, const std::string& kept = "yes") {
    const auto made = api_->Create(kube::ConfigMaps(), ns_,
                                   {{"metadata", {{"name", name}, {"labels", {{"kept", kept}}}}}});
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : Json::object();
  }
  Json Label(const std::string& name, const Json& labels) {
    const auto patched =
        api_->Patch(kube::ConfigMaps(), ns_, name, {{"metadata", {{"labels", labels}}}}, {});
    EXPECT_TRUE(patched) << patched.error().message;
    return patched ? *patched : Json::object();
  }
  void Delete(const std::string& name) {
    const auto deleted = api_->Delete(kube::ConfigMaps(), ns_, name, {});
    EXPECT_TRUE(deleted) << deleted.error().message;
  }
  // The handler's calls, once there are `n`: "a", or "-a" for a deletion.
  std::vector<std::string> Told(std::size_t n) {
    std::vector<std::string> told;
    Until([&] {
      const std::lock_guard lock(mu_);
      told = told_;
      return told.size() >= n;
    });
    return told;
  }
  std::set<std::string> Cached() {
    std::set<std::string> names;
    for (const ObjectPtr& object : informer_->All()) names.insert(MetaField(*object, "name"));
    return names;
  }
  std::string VersionOf(const std::string& name) {
    const ObjectPtr object = informer_->Get(ns_, name);
    return object == nullptr ? "none" : MetaField(*object, "resourceVersion");
  }

  std::shared_ptr<CountingApi> counted_;
  std::mutex mu_;
  std::vector<std::string> told_;  // guarded by mu_
  std::unique_ptr<Informer> informer_;
};

TEST_P(InformerServersTest, ListsInChunksAndThenFollowsTheWatch) {
  std::set<std::string> names;
  for (int i = 0; i < 7; ++i) names.insert("old-" + std::to_string(i));
  for (const std::string& name : names) Make(name);
  Make("other", "no");
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(Cached(), names);
  Make("a");
  const Json changed = Label("a", {{"more", "x"}});
  Delete("old-3");
  const auto told = Told(10);
  EXPECT_THAT(std::vector<std::string>(told.begin() + 7, told.end()),
              ElementsAre("a", "a", "-old-3"));
  EXPECT_EQ(VersionOf("a"), MetaField(changed, "resourceVersion"));
  EXPECT_EQ(VersionOf("old-3"), "none");
}

TEST_P(InformerServersTest, SeveralNamespacesAreOneCacheAndNoOtherIsInIt) {
  const std::string second = ns_ + "-second", third = ns_ + "-third";
  for (const std::string& ns : {second, third}) {
    ASSERT_TRUE(api_->Create(kube::Namespaces(), "", {{"metadata", {{"name", ns}}}}));
  }
  const auto make = [this](const std::string& ns, const std::string& name) {
    const auto made = api_->Create(kube::ConfigMaps(), ns,
                                   {{"metadata", {{"name", name}, {"labels", {{"kept", "yes"}}}}}});
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : Json();
  };
  make(ns_, "a");
  make(second, "b");
  make(third, "c");
  ASSERT_NO_FATAL_FAILURE(Start({.namespaces = {ns_, second}}));
  EXPECT_THAT(Cached(), UnorderedElementsAre("a", "b"));
  const Json stranger = make(third, "d");
  make(second, "e");
  make(ns_, "f");
  EXPECT_THAT(Told(4), UnorderedElementsAre("a", "b", "e", "f"));
  EXPECT_NE(informer_->Get(second, "e"), nullptr);
  EXPECT_EQ(informer_->Get(ns_, "e"), nullptr);
  EXPECT_FALSE(informer_->Observe(stranger));
  EXPECT_EQ(informer_->Get(third, "d"), nullptr);
  EXPECT_TRUE(informer_->state().synced);
}

TEST_P(InformerServersTest, ANamespaceThatCanNotBeListedKeepsTheCacheFromBeingFilled) {
  informer_ =
      std::make_unique<Informer>(counted_, kube::ConfigMaps(),
                                 InformerOptions{.namespaces = {ns_, "No Namespace"},
                                                 .relist_backoff = std::chrono::milliseconds(1)},
                                 [](const Json&, bool) {});
  counted_->refused = "No Namespace";
  informer_->Start();
  ASSERT_TRUE(Until([&] { return informer_->state().failures > 0; }));
  EXPECT_FALSE(informer_->WaitForSync(std::chrono::milliseconds(0)));
  EXPECT_EQ(informer_->LastError(), "not for you");
}

TEST_P(InformerServersTest, WhatNoLongerFitsTheSelectorIsGone) {
  Make("a");
  ASSERT_NO_FATAL_FAILURE(Start());
  Label("a", {{"kept", "no"}});
  EXPECT_THAT(Told(2), ElementsAre("a", "-a"));
  Label("a", {{"kept", "yes"}});
  EXPECT_THAT(Told(3), ElementsAre("a", "-a", "a"));
}

TEST_P(InformerServersTest, AWatchThatTheServerEndsGoesOnWithoutAList) {
  Make("a");
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_TRUE(Until([&] { return counted_->watches >= 1; }));
  Make("b");
  ASSERT_TRUE(Until([&] { return counted_->watches >= 2; }));
  Delete("a");
  EXPECT_THAT(Told(3), ElementsAre("a", "b", "-a"));
  EXPECT_EQ(counted_->lists, 1);
}

TEST_P(InformerServersTest, AListAfterALostPlaceTellsOfWhatWasMissed) {
  Make("a");
  Make("b");
  ASSERT_NO_FATAL_FAILURE(Start());
  counted_->lose_place = true;
  ASSERT_TRUE(Until([&] { return counted_->lists >= 2; }));
  Delete("a");
  Make("c");
  EXPECT_TRUE(Until([&] { return Cached() == std::set<std::string>{"b", "c"}; }));
}

TEST_P(InformerServersTest, OwnWritesAreSeenAtOnceAndOlderNewsDoesNotHideThem) {
  ASSERT_NO_FATAL_FAILURE(Start());
  const Json first = Make("a");
  const Json second = Label("a", {{"more", "x"}});
  informer_->Observe(second);
  EXPECT_EQ(VersionOf("a"), MetaField(second, "resourceVersion"));
  EXPECT_FALSE(informer_->Observe(first)) << "versions of this server can't be compared";
  Make("z");
  ASSERT_TRUE(Until([&] { return VersionOf("z") != "none"; }));
  EXPECT_EQ(VersionOf("a"), MetaField(second, "resourceVersion"));
}

TEST_P(InformerServersTest, AnObjectMadeAgainUnderItsNameIsTheNewOne) {
  Make("a");
  ASSERT_NO_FATAL_FAILURE(Start());
  Delete("a");
  const Json again = Make("a");
  informer_->Observe(again);
  EXPECT_THAT(Told(3), ElementsAre("a", "-a", "a"));
  EXPECT_EQ(VersionOf("a"), MetaField(again, "resourceVersion"));
}

RM_ON_EVERY_SERVER(InformerServersTest);

}  // namespace
}  // namespace ringmaster::runtime
