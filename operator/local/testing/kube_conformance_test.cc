// What callers of KubeApi may count on, run against each implementation: the store directly, the
// REST client with the embedded server, and, where KUBE_CONFORMANCE_KUBECONFIG names one, a real
// API server. This file: creating, reading and changing objects; the other files of this test have
// the rest.
#include "operator/local/testing/conformance_fixture.h"

namespace ringmaster::local::testing {
namespace {

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

TEST_P(KubeConformance, AStaleScaleIsAConflict) {
  Json job = MustCreate(kube::HorovodJobs(), Job("j"));
  PatchLabels("j");
  Json scale = {
      {"apiVersion", "autoscaling/v1"},
      {"kind", "Scale"},
      {"metadata", {{"name", "j"}, {"namespace", ns_}, {"resourceVersion", Version(job)}}},
      {"spec", {{"replicas", 3}}}};
  EXPECT_EQ(Refused(api().Update(kube::HorovodJobs(), ns_, scale, "scale")).code,
            ErrorCode::kConflict);
  scale["metadata"].erase("resourceVersion");
  auto scaled = api().Update(kube::HorovodJobs(), ns_, scale, "scale");
  ASSERT_TRUE(scaled.has_value()) << scaled.error().message;
  EXPECT_EQ((*scaled)["spec"]["replicas"], 3);
}

TEST_P(KubeConformance, ScalesThatTheSchemaForbidsAreInvalidAndNameTheField) {
  MustCreate(kube::HorovodJobs(), Job("j"));
  kube::PatchOptions options;
  options.subresource = "scale";
  for (const Json& replicas : {Json(-1), Json(9), Json(1'000'000), Json("x")}) {
    auto error = Refused(
        api().Patch(kube::HorovodJobs(), ns_, "j", {{"spec", {{"replicas", replicas}}}}, options));
    EXPECT_EQ(error.code, ErrorCode::kInvalid) << replicas;
    EXPECT_THAT(error.message, HasSubstr("replicas")) << replicas;
  }
  auto missing = Refused(
      api().Patch(kube::HorovodJobs(), ns_, "nope", {{"spec", {{"replicas", 1}}}}, options));
  EXPECT_EQ(missing.code, ErrorCode::kNotFound);
}

TEST_P(KubeConformance, SubresourcesThatAKindLacksAreNotFound) {
  Json object = MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  EXPECT_EQ(Refused(api().Update(kube::ConfigMaps(), ns_, object, "status")).code,
            ErrorCode::kNotFound);
  EXPECT_EQ(Refused(api().Update(kube::ConfigMaps(), ns_, object, "scale")).code,
            ErrorCode::kNotFound);
}

TEST_P(KubeConformance, WhatTheServerDecidesCantBeWritten) {
  Json object = ConfigMap("a");
  object["metadata"]["uid"] = "mine";
  object["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z";
  object["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z";
  Json created = MustCreate(kube::ConfigMaps(), object);
  EXPECT_NE(created["metadata"]["uid"], "mine");
  EXPECT_NE(created["metadata"]["creationTimestamp"], "2020-01-01T00:00:00Z");
  EXPECT_FALSE(created["metadata"].contains("deletionTimestamp"));
  Json other = created;
  other["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000";
  EXPECT_EQ(Refused(api().Update(kube::ConfigMaps(), ns_, other)).code, ErrorCode::kConflict);
}

TEST_P(KubeConformance, AnObjectOfAnotherKindOrNamespaceIsInvalid) {
  Json pod = ConfigMap("a");
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  EXPECT_EQ(Refused(api().Create(kube::ConfigMaps(), ns_, pod)).code, ErrorCode::kInvalid);
  EXPECT_EQ(Refused(api().Create(kube::HorovodJobs(), ns_, pod)).code, ErrorCode::kInvalid);
  Json elsewhere = ConfigMap("a");
  elsewhere["metadata"]["namespace"] = "elsewhere";
  auto error = Refused(api().Create(kube::ConfigMaps(), ns_, elsewhere));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("the namespace of the provided object does not match"));
}

TEST_P(KubeConformance, AnObjectWithAVersionCantBeCreated) {
  Json object = ConfigMap("a");
  object["metadata"]["resourceVersion"] = "5";
  EXPECT_THAT(Refused(api().Create(kube::ConfigMaps(), ns_, object)).message,
              HasSubstr("resourceVersion should not be set on objects to be created"));
}

TEST_P(KubeConformance, BadMetadataIsInvalidAndTheFieldIsNamed) {
  struct Case {
    Json metadata;
    const char* field;
  };
  for (const Case& c : std::vector<Case>{
           {{{"labels", {{"a b", "c"}}}}, "metadata.labels: Invalid value: \"a b\""},
           {{{"labels", {{"ok", "no no"}}}}, "metadata.labels: Invalid value: \"no no\""},
           {{{"labels", {{"ok", std::string(64, 'x')}}}}, "metadata.labels"},
           {{{"annotations", {{"a b", "c"}}}}, "metadata.annotations"},
           {{{"annotations", {{"big", std::string(300'000, 'x')}}}}, "metadata.annotations"},
           {{{"ownerReferences", {{{"name", "x"}}}}}, "metadata.ownerReferences"},
           {{{"finalizers", {"bad name"}}}, "metadata.finalizers"}}) {
    Json object = ConfigMap("a");
    object["metadata"].update(c.metadata);
    auto error = Refused(api().Create(kube::ConfigMaps(), ns_, object));
    EXPECT_EQ(error.code, ErrorCode::kInvalid) << c.field;
    EXPECT_EQ(error.http_status, 422) << c.field;
    EXPECT_THAT(error.message, HasSubstr(c.field));
  }
}

TEST_P(KubeConformance, OnlyOneOwnerCanBeTheController) {
  Json job = MustCreate(kube::HorovodJobs(), Job("j"));
  Json other = MustCreate(kube::HorovodJobs(), Job("k"));
  Json object = ConfigMap("a");
  for (const Json& owner : {job, other}) {
    Json ref = OwnerRef(owner);
    ref["controller"] = true;
    object["metadata"]["ownerReferences"].push_back(ref);
  }
  auto error = Refused(api().Create(kube::ConfigMaps(), ns_, object));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("metadata.ownerReferences"));
}

TEST_P(KubeConformance, ADryRunLeavesNothing) {
  kube::CreateOptions options;
  options.dry_run = true;
  auto tried = api().CreateWith(kube::HorovodJobs(), ns_, Job("j"), options);
  ASSERT_TRUE(tried.has_value()) << tried.error().message;
  EXPECT_EQ((*tried)["spec"]["slotsPerWorker"], 1);  // defaults are set
  EXPECT_EQ(Refused(api().Get(kube::HorovodJobs(), ns_, "j")).code, ErrorCode::kNotFound);
}

TEST_P(KubeConformance, UnknownFieldsAreRefusedWhenStrictAndDroppedOtherwise) {
  Json job = Job("j");
  job["spec"]["foo"] = 1;
  kube::CreateOptions strict;
  strict.field_validation = "Strict";
  auto error = Refused(api().CreateWith(kube::HorovodJobs(), ns_, job, strict));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_EQ(error.http_status, 400);
  EXPECT_THAT(error.message, HasSubstr("strict decoding error: unknown field \"spec.foo\""));
  kube::CreateOptions lax;
  lax.field_validation = "Ignore";
  auto created = api().CreateWith(kube::HorovodJobs(), ns_, job, lax);
  ASSERT_TRUE(created.has_value()) << created.error().message;
  EXPECT_FALSE((*created)["spec"].contains("foo"));
}

TEST_P(KubeConformance, JobsThatTheSchemaForbidsAreInvalidAndNameTheField) {
  struct Case {
    const char* pointer;
    Json value;
    const char* field;
  };
  for (const Case& c : std::vector<Case>{
           {"/spec/worker/replicas", "two", "spec.worker.replicas: Invalid value: \"string\""},
           {"/spec/worker/replicas", 1.5, "spec.worker.replicas"},
           {"/spec/slotsPerWorker", 0, "spec.slotsPerWorker: Invalid value: 0: "},
           {"/spec/elasticPolicy", Json::array(), "spec.elasticPolicy: Invalid value: \"array\""},
           {"/spec/elasticPolicy/minReplicas", 9, "minReplicas"},
           {"/spec/runPolicy",
            {{"cleanPodPolicy", "Some"}},
            "spec.runPolicy.cleanPodPolicy: Unsupported value: \"Some\": supported values: "},
           {"/spec/worker", Json::object(), "spec.worker"}}) {
    Json job = Job("j");
    job[Json::json_pointer(c.pointer)] = c.value;
    auto error = Refused(api().Create(kube::HorovodJobs(), ns_, job));
    EXPECT_EQ(error.code, ErrorCode::kInvalid) << c.pointer;
    EXPECT_EQ(error.http_status, 422) << c.pointer;
    EXPECT_THAT(error.message, HasSubstr(c.field));
  }
}

TEST_P(KubeConformance, StatusWritesAreValidatedToo) {
  MustCreate(kube::HorovodJobs(), Job("j"));
  kube::PatchOptions options;
  options.subresource = "status";
  auto error = Refused(
      api().Patch(kube::HorovodJobs(), ns_, "j", {{"status", {{"worldSize", "many"}}}}, options));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("status.worldSize"));
}

TEST_P(KubeConformance, AStatusWriteLeavesMetadataAloneAndChecksTheVersion) {
  Json job = MustCreate(kube::HorovodJobs(), Job("j"));
  PatchLabels("j");
  job["status"] = {{"worldSize", 1}};
  EXPECT_EQ(Refused(api().Update(kube::HorovodJobs(), ns_, job, "status")).code,
            ErrorCode::kConflict);
  kube::PatchOptions options;
  options.subresource = "status";
  auto patched = api().Patch(
      kube::HorovodJobs(), ns_, "j",
      {{"metadata", {{"labels", {{"other", "x"}}}}}, {"status", {{"worldSize", 2}}}}, options);
  ASSERT_TRUE(patched.has_value()) << patched.error().message;
  EXPECT_FALSE((*patched)["metadata"]["labels"].contains("other"));
  EXPECT_EQ((*patched)["status"]["worldSize"], 2);
}

RM_ON_EVERY_SERVER(KubeConformance);
RM_ON_EVERY_SERVER(KubeApply);
INSTANTIATE_TEST_SUITE_P(Api, KubeRest, ::testing::ValuesIn(RestBackends()), NameOf);

}  // namespace
}  // namespace ringmaster::local::testing
