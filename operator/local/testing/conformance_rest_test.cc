// What only HTTP shows: tables, warnings, paths and methods.
#include "operator/kube/kube_client.h"
#include "operator/kube/resources.h"
#include "operator/local/testing/conformance_fixture.h"

namespace ringmaster::local::testing {
namespace {

TEST_P(KubeRest, UnknownFieldsOfAJobAreWarnedOf) {
  Json job = Job("j");
  job["apiVersion"] = "ringmaster.dev/v1alpha1";
  job["kind"] = "HorovodJob";
  job["spec"]["foo"] = 1;
  auto answer = Send({"POST", JobPath("?fieldValidation=Warn"), job.dump(), "application/json"});
  EXPECT_EQ(answer.status, 201);
  EXPECT_THAT(answer.warnings, ::testing::ElementsAre("unknown field \"spec.foo\""));
}

TEST_P(KubeRest, JobsAreShownInTheColumnsOfTheirDefinition) {
  MustCreate(kube::HorovodJobs(), Job("j"));
  kube::HttpRequest request{"GET", JobPath()};
  request.accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  Json table = Body(Send(request));
  EXPECT_EQ(table["kind"], "Table");
  std::vector<std::string> names;
  for (const Json& column : table["columnDefinitions"]) names.push_back(column["name"]);
  // The columns that people look at; a test of the definition has the whole list.
  EXPECT_THAT(names, ::testing::IsSupersetOf({"Name", "State", "Workers", "Age"}));
  EXPECT_EQ(names.front(), "Name");
  ASSERT_EQ(table["rows"].size(), 1u);
  EXPECT_EQ(table["rows"][0]["cells"].size(), names.size());
  EXPECT_EQ(table["rows"][0]["cells"][0], "j");
  EXPECT_EQ(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

TEST_P(KubeRest, PodsAreShownAsPeopleKnowThem) {
  MustCreate(kube::Pods(), Pod("p"));
  kube::HttpRequest request{"GET", Path("pods")};
  request.accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  Json table = Body(Send(request));
  std::vector<std::string> names;
  for (const Json& column : table["columnDefinitions"]) names.push_back(column["name"]);
  EXPECT_THAT(names, ::testing::ElementsAre("Name", "Ready", "Status", "Restarts", "Age", "IP",
                                            "Node", "Nominated Node", "Readiness Gates"));
  const Json& cells = table["rows"][0]["cells"];
  EXPECT_EQ(cells[0], "p");
  EXPECT_EQ(cells[1], "0/1");
  EXPECT_EQ(cells[2], "SchedulingGated");
  EXPECT_EQ(cells[6], "<none>");
}

TEST_P(KubeRest, TheScaleOfAJobCanBeRead) {
  MustCreate(kube::HorovodJobs(), Job("j"));
  Json scale = Body(Send({"GET", JobPath("/j/scale")}));
  EXPECT_EQ(scale["kind"], "Scale");
  EXPECT_EQ(scale["apiVersion"], "autoscaling/v1");
  EXPECT_EQ(scale["metadata"]["name"], "j");
  EXPECT_EQ(scale["spec"]["replicas"], 2);
  EXPECT_EQ(scale["status"]["replicas"], 0);
}

TEST_P(KubeRest, AnEventIsTheSameThroughBothApis) {
  Json event = {{"apiVersion", "v1"},
                {"kind", "Event"},
                {"metadata", {{"name", "e"}, {"namespace", ns_}}},
                {"involvedObject", {{"kind", "Pod"}, {"name", "p"}, {"namespace", ns_}}},
                {"reason", "R"},
                {"message", "text"},
                {"type", "Normal"}};
  auto made = Send({"POST", Path("events"), event.dump(), "application/json"});
  ASSERT_EQ(made.status, 201) << made.body;
  auto got = api().Get(kube::Events(), ns_, "e");
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ((*got)["note"], "text");
  EXPECT_EQ((*got)["regarding"]["name"], "p");
  Json core = Body(Send({"GET", Path("events/e")}));
  EXPECT_EQ(core["message"], "text");
  EXPECT_EQ(core["involvedObject"]["name"], "p");
}

TEST_P(KubeRest, AJobTakesNoStrategicPatch) {
  MustCreate(kube::HorovodJobs(), Job("j"));
  const auto answer = Send({"PATCH", JobPath("/j"), R"({"metadata": {"labels": {"a": "b"}}})",
                            "application/strategic-merge-patch+json"});
  EXPECT_EQ(answer.status, 415) << answer.body;
}

TEST_P(KubeRest, WrongRequestsGetTheCodeThatSaysWhatIsWrong) {
  MustCreate(kube::ConfigMaps(), ConfigMap("a"));
  const std::string object = Path("configmaps/a");
  struct Case {
    kube::HttpRequest request;
    int status;
  };
  for (const Case& c : std::vector<Case>{
           {{"GET", "/apis/ringmaster.dev/v1alpha1/nothings"}, 404},
           {{"GET", "/apis/nobody.example/v1/things"}, 404},
           {{"GET", object + "/status"}, 404},
           {{"POST", object, "{}", "application/json"}, 405},
           {{"PUT", Path("configmaps"), "{}", "application/json"}, 405},
           {{"PATCH", object, "{}", "text/plain"}, 415},
           {{"POST", Path("configmaps"), "nonsense", "application/json"}, 400},
           {{"PATCH", object, "[1]", "application/merge-patch+json"}, 400},
           {{"PUT", object,
             R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})",
             "application/json"},
            400}}) {
    EXPECT_EQ(Send(c.request).status, c.status) << c.request.method << " " << c.request.path;
  }
}

TEST_P(KubeRest, ATokenThatNobodyKnowsIsUnauthorized) {
  kube::ClientConfig stranger = config_;
  stranger.token = "nobody's";
  stranger.token_file.clear();
  stranger.client_cert_pem.clear();
  stranger.client_key_pem.clear();
  stranger.client_cert_file.clear();
  stranger.client_key_file.clear();
  auto api = kube::MakeKubeClient(stranger);
  ASSERT_TRUE(api.has_value());
  auto error = Refused((*api)->Get(kube::ConfigMaps(), ns_, "a"));
  EXPECT_EQ(error.code, ErrorCode::kForbidden);
  EXPECT_EQ(error.http_status, 401);
}

TEST_P(KubeRest, DiscoveryKnowsTheJobsNamesAndSubresources) {
  Json list = Body(Send({"GET", "/apis/ringmaster.dev/v1alpha1"}));
  std::map<std::string, Json> resources;
  for (const Json& resource : list["resources"]) resources[resource["name"]] = resource;
  ASSERT_TRUE(resources.contains("horovodjobs")) << list;
  EXPECT_EQ(resources["horovodjobs"]["kind"], "HorovodJob");
  EXPECT_EQ(resources["horovodjobs"]["singularName"], "horovodjob");
  EXPECT_EQ(resources["horovodjobs"]["shortNames"], Json::array({"hvdjob"}));
  EXPECT_EQ(resources["horovodjobs"]["categories"], Json::array({"all"}));
  EXPECT_EQ(resources["horovodjobs/scale"]["kind"], "Scale");
  EXPECT_EQ(resources["horovodjobs/status"]["kind"], "HorovodJob");
}

}  // namespace
}  // namespace ringmaster::local::testing
