// Lists and watches.
#include "operator/local/testing/conformance_fixture.h"

namespace ringmaster::local::testing {
namespace {

TEST_P(KubeConformance, ListsByLabelAndInChunks) {
  for (int i = 0; i < 7; ++i) {
    Json object = ConfigMap("c" + std::to_string(i));
    object["metadata"]["labels"] = {{"parity", i % 2 ? "odd" : "even"}};
    MustCreate(kube::ConfigMaps(), object);
  }
  kube::ListOptions options;
  options.label_selector = "parity in (even, none),parity!=odd";
  options.chunk = 2;
  auto list = api().ListAll(kube::ConfigMaps(), ns_, options);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  std::vector<std::string> names;
  for (const Json& item : list->items) {
    names.push_back(item["metadata"]["name"]);
    EXPECT_EQ(item.value("kind", ""), "ConfigMap");
    EXPECT_EQ(item.value("apiVersion", ""), "v1");
  }
  EXPECT_THAT(names, UnorderedElementsAre("c0", "c2", "c4", "c6"));
  EXPECT_FALSE(list->resource_version.empty());
}

TEST_P(KubeConformance, ListsByField) {
  MustCreate(kube::Pods(), Pod("p"));
  MustCreate(kube::Pods(), Pod("q"));
  kube::ListOptions options;
  options.field_selector = "metadata.name=p,status.phase=Pending";
  auto list = api().ListAll(kube::Pods(), ns_, options);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  ASSERT_EQ(list->items.size(), 1u);
  EXPECT_EQ(list->items[0]["metadata"]["name"], "p");
}

TEST_P(KubeConformance, UnknownSelectorsAreInvalid) {
  kube::ListOptions options;
  options.field_selector = "spec.nothing=1";
  auto list = api().ListAll(kube::Pods(), ns_, options);
  ASSERT_FALSE(list.has_value());
  EXPECT_EQ(list.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(list.error().message, HasSubstr("field label not supported: spec.nothing"));
  options = {};
  options.label_selector = "a in b";
  EXPECT_FALSE(api().ListAll(kube::Pods(), ns_, options).has_value());
}

TEST_P(KubeConformance, WatchFromAListSeesWhatComesAfter) {
  MustCreate(kube::ConfigMaps(), ConfigMap("old"));
  auto list = api().ListAll(kube::ConfigMaps(), ns_, {});
  ASSERT_TRUE(list.has_value());
  Json a = MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  a["data"]["k"] = "2";
  ASSERT_TRUE(api().Update(kube::ConfigMaps(), ns_, a).has_value());
  ASSERT_TRUE(api().Delete(kube::ConfigMaps(), ns_, "a", {}).has_value());
  kube::WatchOptions options;
  options.resource_version = list->resource_version;
  EXPECT_EQ(Watch(kube::ConfigMaps(), options, 3),
            (std::vector<std::string>{"ADDED a", "MODIFIED a", "DELETED a"}));
}

TEST_P(KubeConformance, WatchWithoutAVersionBeginsWithWhatIsThere) {
  kube::WatchOptions options;
  options.label_selector = "conformance=yes";
  Json object = ConfigMap("a");
  object["metadata"]["labels"] = {{"conformance", "yes"}};
  MustCreate(kube::ConfigMaps(), object);
  EXPECT_EQ(Watch(kube::ConfigMaps(), options, 1), (std::vector<std::string>{"ADDED a"}));
}

TEST_P(KubeConformance, AnObjectThatLeavesTheSelectionIsDeletedForItsWatchers) {
  auto list = api().ListAll(kube::ConfigMaps(), ns_, {});
  Json object = ConfigMap("a");
  object["metadata"]["labels"] = {{"in", "yes"}};
  object = MustCreate(kube::ConfigMaps(), object);
  object["metadata"]["labels"]["in"] = "no";
  auto out = api().Update(kube::ConfigMaps(), ns_, object);
  ASSERT_TRUE(out.has_value());
  (*out)["metadata"]["labels"]["in"] = "yes";
  ASSERT_TRUE(api().Update(kube::ConfigMaps(), ns_, *out).has_value());
  kube::WatchOptions options;
  options.label_selector = "in=yes";
  options.resource_version = list->resource_version;
  EXPECT_EQ(Watch(kube::ConfigMaps(), options, 3),
            (std::vector<std::string>{"ADDED a", "DELETED a", "ADDED a"}));
}

TEST_P(KubeConformance, AWatchEndsWhenAskedTo) {
  std::stop_source stop;
  std::atomic<bool> began = false;
  std::thread stopper([&] {
    while (!began) std::this_thread::yield();
    stop.request_stop();
  });
  MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  kube::WatchOptions options;
  auto result = api().Watch(
      kube::ConfigMaps(), ns_, options,
      [&](const WatchEvent&) {
        began = true;
        return true;
      },
      stop.get_token());
  began = true;  // a watch that failed must not leave the other thread waiting
  stopper.join();
  EXPECT_TRUE(result.has_value()) << result.error().message;
}

TEST_P(KubeConformance, AWatchEndsByItsTimeoutAndCanGoOn) {
  auto list = api().ListAll(kube::ConfigMaps(), ns_, {});
  kube::WatchOptions options;
  options.resource_version = list->resource_version;
  options.timeout = std::chrono::seconds(1);
  int events = 0;
  const auto begun = std::chrono::steady_clock::now();
  auto result = api().Watch(kube::ConfigMaps(), ns_, options,
                            [&](const WatchEvent& event) {
                              events += event.type != WatchEvent::Type::kBookmark;
                              return true;
                            },
                            {});
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_TRUE(result.has_value()) << result.error().message;
  EXPECT_EQ(events, 0);
  EXPECT_GE(took, std::chrono::milliseconds(900)) << "it ended before its time";
  EXPECT_LT(took, std::chrono::seconds(60)) << "it ended by something else";
  // What happens between two watches is not lost.
  MustCreate(kube::ConfigMaps(), ConfigMap("between"));
  EXPECT_THAT(Watch(kube::ConfigMaps(), options, 1), ::testing::ElementsAre("ADDED between"));
}

TEST_P(KubeConformance, AWatchFromBeforeTheHistoryIsGone) {
  // Jobs came after the definition of their kind, so nobody knows of any at version 1.
  kube::WatchOptions options;
  options.resource_version = "1";
  options.timeout = std::chrono::seconds(5);
  auto error = Refused(
      api().Watch(kube::HorovodJobs(), ns_, options, [](const WatchEvent&) { return true; }, {}));
  EXPECT_EQ(error.code, ErrorCode::kGone);
  EXPECT_EQ(error.reason, "Expired");
  EXPECT_THAT(error.message, HasSubstr("too old resource version: 1"));
}

TEST_P(KubeConformance, ListsOfAllNamespacesHaveThoseOfEach) {
  MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  kube::ListOptions options;
  options.field_selector = "metadata.namespace=" + ns_ + ",metadata.name=a";
  auto list = api().ListAll(kube::ConfigMaps(), "", options);
  ASSERT_TRUE(list.has_value()) << list.error().message;
  ASSERT_EQ(list->items.size(), 1u);
  EXPECT_EQ(list->items[0]["metadata"]["namespace"], ns_);
}

TEST_P(KubeConformance, DeletedObjectsAreShownInTheirLastState) {
  auto list = api().ListAll(kube::ConfigMaps(), ns_, {});
  ASSERT_TRUE(list.has_value());
  Json object = MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  ASSERT_TRUE(api().Delete(kube::ConfigMaps(), ns_, "a", {}).has_value());
  kube::WatchOptions options;
  options.resource_version = list->resource_version;
  options.field_selector = "metadata.name=a";
  Json last;
  auto ended = api().Watch(kube::ConfigMaps(), ns_, options,
                           [&](const WatchEvent& event) {
                             last = event.object;
                             return event.type != WatchEvent::Type::kDeleted;
                           },
                           {});
  ASSERT_TRUE(ended.has_value()) << ended.error().message;
  EXPECT_EQ(last["data"]["k"], "v");
  EXPECT_NE(Version(last), Version(object)) << "the deletion has a version of its own";
}

}  // namespace
}  // namespace ringmaster::local::testing
