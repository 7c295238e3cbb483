// What callers of KubeApi may count on, run against each implementation: the store directly, the
// REST client with the embedded server, and, where KUBE_CONFORMANCE_KUBECONFIG names one, a real
// API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "operator/local/testing/conformance.h"

namespace ringmaster::local::testing {
namespace {

using kube::ErrorCode;
using kube::Json;
using kube::WatchEvent;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class KubeConformance : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    cluster_ = GetParam().start();
    ASSERT_NE(cluster_, nullptr);
    ns_ = cluster_->ns();
  }
  kube::KubeApi& api() { return cluster_->api(); }

  Json ConfigMap(const std::string& name, Json data = {{"k", "v"}}) {
    return {{"metadata", {{"name", name}}}, {"data", std::move(data)}};
  }
  Json Pod(const std::string& name) {
    return {{"metadata", {{"name", name}, {"labels", {{"app", "x"}}}}},
            {"spec",
             {{"schedulingGates", {{{"name", "test/hold"}}}},
              {"containers", {{{"name", "main"}, {"image", "none"}}}}}}};
  }
  Json Job(const std::string& name, int replicas = 2) {
    return {{"metadata", {{"name", name}}},
            {"spec",
             {{"elasticPolicy", {{"minReplicas", 1}, {"maxReplicas", 8}}},
              {"worker",
               {{"replicas", replicas},
                {"template",
                 {{"spec",
                   {{"containers",
                     {{{"name", "worker"}, {"image", "i"}, {"command", {"true"}}}}}}}}}}}}}};
  }
  Json MustCreate(const kube::Resource& resource, const Json& object) {
    auto created = api().Create(resource, ns_, object);
    EXPECT_TRUE(created.has_value()) << created.error().message;
    return created ? *created : Json::object();
  }
  static std::string Version(const Json& object) { return object["metadata"]["resourceVersion"]; }
  Json OwnerRef(const Json& owner, bool block = false) {
    Json ref = {{"apiVersion", owner["apiVersion"]},
                {"kind", owner["kind"]},
                {"name", owner["metadata"]["name"]},
                {"uid", owner["metadata"]["uid"]}};
    if (block) ref["blockOwnerDeletion"] = true;
    return ref;
  }
  // Garbage collection is asynchronous on a real server.
  ::testing::AssertionResult Goes(const kube::Resource& resource, const std::string& name) {
    return Until([&] {
      auto got = api().Get(resource, ns_, name);
      return !got && got.error().code == ErrorCode::kNotFound;
    });
  }
  template <class F>
  ::testing::AssertionResult Until(F holds) {
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      if (holds()) return ::testing::AssertionSuccess();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return ::testing::AssertionFailure() << "not within 30 s";
  }
  // Events until `enough`, as "ADDED name".
  std::vector<std::string> Watch(const kube::Resource& resource, kube::WatchOptions options,
                                 size_t enough) {
    std::vector<std::string> seen;
    options.timeout = std::chrono::seconds(20);
    auto result =
        api().Watch(resource, ns_, options,
                    [&](const WatchEvent& event) {
                      if (event.type == WatchEvent::Type::kBookmark) return true;
                      const char* kNames[] = {"ADDED", "MODIFIED", "DELETED"};
                      seen.push_back(std::string(kNames[static_cast<int>(event.type)]) + " " +
                                     event.object["metadata"]["name"].get<std::string>());
                      return seen.size() < enough;
                    },
                    {});
    EXPECT_TRUE(result.has_value()) << result.error().message;
    return seen;
  }

  std::unique_ptr<Cluster> cluster_;
  std::string ns_;
};

TEST_P(KubeConformance, CreateFillsInIdentity) {
  Json object = MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  EXPECT_EQ(object["metadata"]["namespace"], ns_);
  EXPECT_FALSE(object["metadata"]["uid"].get<std::string>().empty());
  EXPECT_TRUE(object["metadata"].contains("creationTimestamp"));
  EXPECT_EQ(object["kind"], "ConfigMap");
  EXPECT_EQ(object["apiVersion"], "v1");
  auto got = api().Get(kube::ConfigMaps(), ns_, "a");
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ((*got)["data"]["k"], "v");
  EXPECT_EQ(Version(*got), Version(object));
}

TEST_P(KubeConformance, CreateOfAnExistingNameIsAlreadyExists) {
  MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  auto again = api().Create(kube::ConfigMaps(), ns_, ConfigMap("a"));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(again.error().http_status, 409);
  EXPECT_THAT(again.error().message, HasSubstr("configmaps \"a\" already exists"));
}

TEST_P(KubeConformance, GenerateNameMakesDifferentNames) {
  Json object = {{"metadata", {{"generateName", "gen-"}}}};
  std::string first = MustCreate(kube::ConfigMaps(), object)["metadata"]["name"];
  std::string second = MustCreate(kube::ConfigMaps(), object)["metadata"]["name"];
  EXPECT_NE(first, second);
  EXPECT_EQ(first.substr(0, 4), "gen-");
}

TEST_P(KubeConformance, MissingObjectsAreNotFoundAndTheMessageNamesThem) {
  auto got = api().Get(kube::HorovodJobs(), ns_, "nope");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(got.error().reason, "NotFound");
  EXPECT_THAT(got.error().message,
              HasSubstr("get horovodjobs.ringmaster.dev \"nope\" in namespace"));
  EXPECT_THAT(got.error().message, HasSubstr("horovodjobs.ringmaster.dev \"nope\" not found"));
  auto gone = api().Delete(kube::ConfigMaps(), ns_, "nope", {});
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
}

TEST_P(KubeConformance, CreateInAMissingNamespaceIsNotFound) {
  auto created = api().Create(kube::ConfigMaps(), "no-such-namespace", ConfigMap("a"));
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(created.error().message, HasSubstr("namespaces \"no-such-namespace\" not found"));
}

TEST_P(KubeConformance, BadNamesAreInvalidAndTheFieldIsNamed) {
  auto created = api().Create(kube::ConfigMaps(), ns_, ConfigMap("Not_A_Name"));
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(created.error().http_status, 422);
  EXPECT_THAT(created.error().message, HasSubstr("metadata.name: Invalid value: \"Not_A_Name\""));
}

TEST_P(KubeConformance, UpdateWithAnOldVersionIsAConflict) {
  Json object = MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  Json newer = object;
  newer["data"]["k"] = "w";
  ASSERT_TRUE(api().Update(kube::ConfigMaps(), ns_, newer).has_value());
  object["data"]["k"] = "x";
  auto late = api().Update(kube::ConfigMaps(), ns_, object);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, ErrorCode::kConflict);
  EXPECT_THAT(late.error().message, HasSubstr("the object has been modified; please apply your "
                                              "changes to the latest version and try again"));
}

TEST_P(KubeConformance, UpdateWithoutVersionIsUnconditionalForConfigMapsAndRefusedForJobs) {
  MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  EXPECT_TRUE(api().Update(kube::ConfigMaps(), ns_, ConfigMap("a", {{"k", "2"}})).has_value());
  MustCreate(kube::HorovodJobs(), Job("j"));
  auto refused = api().Update(kube::HorovodJobs(), ns_, Job("j"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("must be specified for an update"));
}

TEST_P(KubeConformance, UpdateThatChangesNothingKeepsTheVersion) {
  Json object = MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  auto same = api().Update(kube::ConfigMaps(), ns_, object);
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(Version(*same), Version(object));
}

TEST_P(KubeConformance, GenerationRisesWithTheSpecOnly) {
  Json job = MustCreate(kube::HorovodJobs(), Job("j"));
  EXPECT_EQ(job["metadata"]["generation"], 1);
  job["metadata"]["labels"]["a"] = "b";
  auto labelled = api().Update(kube::HorovodJobs(), ns_, job);
  ASSERT_TRUE(labelled.has_value()) << labelled.error().message;
  EXPECT_EQ((*labelled)["metadata"]["generation"], 1);
  (*labelled)["spec"]["worker"]["replicas"] = 3;
  auto scaled = api().Update(kube::HorovodJobs(), ns_, *labelled);
  ASSERT_TRUE(scaled.has_value()) << scaled.error().message;
  EXPECT_EQ((*scaled)["metadata"]["generation"], 2);
}

TEST_P(KubeConformance, StatusIsWrittenThroughItsSubresourceOnly) {
  Json job = Job("j");
  job["status"] = {{"worldSize", 9}};
  job = MustCreate(kube::HorovodJobs(), job);
  EXPECT_FALSE(job.contains("status"));
  job["status"] = {{"worldSize", 4}};
  job["spec"]["worker"]["replicas"] = 7;
  auto status = api().Update(kube::HorovodJobs(), ns_, job, "status");
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ((*status)["status"]["worldSize"], 4);
  EXPECT_EQ((*status)["spec"]["worker"]["replicas"], 2);
  EXPECT_EQ((*status)["metadata"]["generation"], 1);
  (*status)["status"]["worldSize"] = 5;
  auto spec = api().Update(kube::HorovodJobs(), ns_, *status);
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ((*spec)["status"]["worldSize"], 4);
}

TEST_P(KubeConformance, MergePatchChangesAndRemovesFields) {
  MustCreate(kube::ConfigMaps(), ConfigMap("a", {{"x", "1"}, {"y", "2"}}));
  auto patched =
      api().Patch(kube::ConfigMaps(), ns_, "a", {{"data", {{"x", nullptr}, {"y", "3"}}}}, {});
  ASSERT_TRUE(patched.has_value()) << patched.error().message;
  EXPECT_EQ((*patched)["data"], Json({{"y", "3"}}));
}

TEST_P(KubeConformance, PatchWithAnOldVersionIsAConflict) {
  Json object = MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  ASSERT_TRUE(api().Patch(kube::ConfigMaps(), ns_, "a", {{"data", {{"k", "2"}}}}, {}).has_value());
  Json late = {{"metadata", {{"resourceVersion", Version(object)}}}, {"data", {{"k", "3"}}}};
  auto refused = api().Patch(kube::ConfigMaps(), ns_, "a", late, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
}

TEST_P(KubeConformance, StatusPatchLeavesTheSpecAlone) {
  MustCreate(kube::HorovodJobs(), Job("j"));
  kube::PatchOptions options;
  options.subresource = "status";
  auto patched =
      api().Patch(kube::HorovodJobs(), ns_, "j",
                  {{"status", {{"worldSize", 2}}}, {"spec", {{"slotsPerWorker", 5}}}}, options);
  ASSERT_TRUE(patched.has_value()) << patched.error().message;
  EXPECT_EQ((*patched)["status"]["worldSize"], 2);
  EXPECT_NE((*patched)["spec"].value("slotsPerWorker", 1), 5);
}

TEST_P(KubeConformance, ScaleSubresourceChangesReplicas) {
  MustCreate(kube::HorovodJobs(), Job("j"));
  kube::PatchOptions options;
  options.subresource = "scale";
  auto scale = api().Patch(kube::HorovodJobs(), ns_, "j", {{"spec", {{"replicas", 5}}}}, options);
  ASSERT_TRUE(scale.has_value()) << scale.error().message;
  EXPECT_EQ((*scale)["kind"], "Scale");
  EXPECT_EQ((*scale)["spec"]["replicas"], 5);
  auto job = api().Get(kube::HorovodJobs(), ns_, "j");
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ((*job)["spec"]["worker"]["replicas"], 5);
  EXPECT_EQ((*job)["metadata"]["generation"], 2);
}

TEST_P(KubeConformance, ApplyCreatesChangesAndRemovesItsOwnFields) {
  kube::PatchOptions options;
  options.type = kube::PatchType::kApply;
  options.field_manager = "one";
  Json config = {{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", {{"name", "a"}}},
                 {"data", {{"x", "1"}, {"y", "1"}}}};
  auto created = api().Patch(kube::ConfigMaps(), ns_, "a", config, options);
  ASSERT_TRUE(created.has_value()) << created.error().message;
  config["data"] = {{"x", "2"}};
  auto changed = api().Patch(kube::ConfigMaps(), ns_, "a", config, options);
  ASSERT_TRUE(changed.has_value()) << changed.error().message;
  EXPECT_EQ((*changed)["data"], Json({{"x", "2"}}));
}

TEST_P(KubeConformance, ApplyOfAnothersFieldIsAConflictUnlessForced) {
  kube::PatchOptions options;
  options.type = kube::PatchType::kApply;
  options.field_manager = "one";
  Json config = {{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata", {{"name", "a"}}},
                 {"data", {{"x", "1"}}}};
  ASSERT_TRUE(api().Patch(kube::ConfigMaps(), ns_, "a", config, options).has_value());
  options.field_manager = "two";
  config["data"]["x"] = "2";
  auto refused = api().Patch(kube::ConfigMaps(), ns_, "a", config, options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("conflict with \"one\": .data.x"));
  options.force = true;
  auto forced = api().Patch(kube::ConfigMaps(), ns_, "a", config, options);
  ASSERT_TRUE(forced.has_value()) << forced.error().message;
  EXPECT_EQ((*forced)["data"]["x"], "2");
}

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
  stopper.join();
  EXPECT_TRUE(result.has_value()) << result.error().message;
}

TEST_P(KubeConformance, AWatchEndsByItsTimeoutAndCanGoOn) {
  auto list = api().ListAll(kube::ConfigMaps(), ns_, {});
  kube::WatchOptions options;
  options.resource_version = list->resource_version;
  options.timeout = std::chrono::seconds(1);
  auto result =
      api().Watch(kube::ConfigMaps(), ns_, options, [](const WatchEvent&) { return true; }, {});
  EXPECT_TRUE(result.has_value()) << result.error().message;
}

TEST_P(KubeConformance, DeletePreconditionsAreChecked) {
  Json object = MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  kube::DeleteOptions options;
  options.uid = "00000000-0000-0000-0000-000000000000";
  auto refused = api().Delete(kube::ConfigMaps(), ns_, "a", options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("Precondition failed: UID in precondition"));
  options.uid = object["metadata"]["uid"];
  options.resource_version = Version(object);
  EXPECT_TRUE(api().Delete(kube::ConfigMaps(), ns_, "a", options).has_value());
}

TEST_P(KubeConformance, FinalizersHoldAnObjectUntilTheyAreGone) {
  Json object = ConfigMap("a");
  object["metadata"]["finalizers"] = {"ringmaster.dev/test"};
  MustCreate(kube::ConfigMaps(), object);
  ASSERT_TRUE(api().Delete(kube::ConfigMaps(), ns_, "a", {}).has_value());
  auto held = api().Get(kube::ConfigMaps(), ns_, "a");
  ASSERT_TRUE(held.has_value());
  EXPECT_TRUE((*held)["metadata"].contains("deletionTimestamp"));
  Json more = *held;
  more["metadata"]["finalizers"].push_back("ringmaster.dev/another");
  auto refused = api().Update(kube::ConfigMaps(), ns_, more);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  (*held)["metadata"].erase("finalizers");
  ASSERT_TRUE(api().Update(kube::ConfigMaps(), ns_, *held).has_value());
  EXPECT_TRUE(Goes(kube::ConfigMaps(), "a"));
}

TEST_P(KubeConformance, DependentsGoWithTheirOwner) {
  Json owner = MustCreate(kube::HorovodJobs(), Job("j"));
  Json child = ConfigMap("child");
  child["metadata"]["ownerReferences"] = Json::array({OwnerRef(owner)});
  MustCreate(kube::ConfigMaps(), child);
  kube::DeleteOptions options;
  options.propagation = "Background";
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "j", options).has_value());
  EXPECT_TRUE(Goes(kube::ConfigMaps(), "child"));
}

TEST_P(KubeConformance, OrphanedDependentsStay) {
  Json owner = MustCreate(kube::HorovodJobs(), Job("j"));
  Json child = ConfigMap("child");
  child["metadata"]["ownerReferences"] = Json::array({OwnerRef(owner)});
  MustCreate(kube::ConfigMaps(), child);
  kube::DeleteOptions options;
  options.propagation = "Orphan";
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "j", options).has_value());
  EXPECT_TRUE(Goes(kube::HorovodJobs(), "j"));
  auto left = api().Get(kube::ConfigMaps(), ns_, "child");
  ASSERT_TRUE(left.has_value());
  EXPECT_FALSE((*left)["metadata"].contains("ownerReferences"));
}

TEST_P(KubeConformance, ForegroundDeletionWaitsForBlockingDependents) {
  Json owner = MustCreate(kube::HorovodJobs(), Job("j"));
  Json child = ConfigMap("child");
  child["metadata"]["ownerReferences"] = Json::array({OwnerRef(owner, true)});
  child["metadata"]["finalizers"] = {"ringmaster.dev/test"};
  MustCreate(kube::ConfigMaps(), child);
  kube::DeleteOptions options;
  options.propagation = "Foreground";
  ASSERT_TRUE(api().Delete(kube::HorovodJobs(), ns_, "j", options).has_value());
  ASSERT_TRUE(Until([&] {
    auto c = api().Get(kube::ConfigMaps(), ns_, "child");
    return c && (*c)["metadata"].contains("deletionTimestamp");
  }));
  auto held = api().Get(kube::HorovodJobs(), ns_, "j");
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ((*held)["metadata"]["finalizers"], Json::array({"foregroundDeletion"}));
  ASSERT_TRUE(
      api()
          .Patch(kube::ConfigMaps(), ns_, "child", {{"metadata", {{"finalizers", nullptr}}}}, {})
          .has_value());
  EXPECT_TRUE(Goes(kube::ConfigMaps(), "child"));
  EXPECT_TRUE(Goes(kube::HorovodJobs(), "j"));
}

TEST_P(KubeConformance, APodWithoutANodeGoesAtOnce) {
  MustCreate(kube::Pods(), Pod("p"));
  ASSERT_TRUE(api().Delete(kube::Pods(), ns_, "p", {}).has_value());
  EXPECT_TRUE(Goes(kube::Pods(), "p"));
}

TEST_P(KubeConformance, APodsSpecCantChangeButItsGatesCanGo) {
  Json pod = MustCreate(kube::Pods(), Pod("p"));
  EXPECT_EQ(pod["status"]["phase"], "Pending");
  Json changed = pod;
  changed["spec"]["containers"][0]["command"] = {"sleep"};
  auto refused = api().Update(kube::Pods(), ns_, changed);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("pod updates may not change fields other than"));
  kube::PatchOptions options;
  auto ungated =
      api().Patch(kube::Pods(), ns_, "p", {{"spec", {{"schedulingGates", nullptr}}}}, options);
  ASSERT_TRUE(ungated.has_value()) << ungated.error().message;
  EXPECT_FALSE((*ungated)["spec"].contains("schedulingGates"));
}

TEST_P(KubeConformance, EvictionOfAMissingPodIsNotFound) {
  auto result = api().Evict(ns_, "nope", {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
}

TEST_P(KubeConformance, EvictionDeletesAPodThatDoesntRun) {
  MustCreate(kube::Pods(), Pod("p"));
  auto result = api().Evict(ns_, "p", {});
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_TRUE(Goes(kube::Pods(), "p"));
}

TEST_P(KubeConformance, LeasesAreUpdatedByCompareAndSwap) {
  Json lease = MustCreate(kube::Leases(),
                          {{"metadata", {{"name", "leader"}}},
                           {"spec", {{"holderIdentity", "a"}, {"leaseDurationSeconds", 15}}}});
  Json mine = lease, theirs = lease;
  mine["spec"]["holderIdentity"] = "b";
  theirs["spec"]["holderIdentity"] = "c";
  ASSERT_TRUE(api().Update(kube::Leases(), ns_, mine).has_value());
  auto lost = api().Update(kube::Leases(), ns_, theirs);
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, ErrorCode::kConflict);
}

// gtest makes its parameters before main() could pass any on.
std::string Kubeconfig() {
  const char* file = std::getenv("KUBE_CONFORMANCE_KUBECONFIG");
  return file ? file : "";
}

INSTANTIATE_TEST_SUITE_P(Api, KubeConformance, ::testing::ValuesIn(Backends(Kubeconfig())),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringmaster::local::testing
