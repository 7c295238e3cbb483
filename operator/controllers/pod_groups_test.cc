// Jobs whose pods the Kubernetes scheduler keeps together.
#include "operator/controllers/pod_groups.h"

#include "operator/controllers/testing/job_controller_fixture.h"
#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using ::testing::IsEmpty;
using testing::JobControllerTest;

api::HorovodJob Job(const Json& spec = Json::object()) {
  Json object = api::testing::JobObject("digits", 4, 3);
  object["metadata"]["uid"] = "u";
  object["spec"].merge_patch(spec);
  const auto job = api::ParseHorovodJob(object);
  EXPECT_TRUE(job) << api::ToString(job.error());
  return *job;
}

// Serves one version of PodGroups, as an API server does.
class OneVersionApi : public runtime::ScriptedApi {
 public:
  std::string served;
  kube::Error otherwise = {.code = kube::ErrorCode::kNotFound, .http_status = 404};
  std::vector<kube::Error> first;  // the first answers
  std::vector<std::string> asked;

  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions&) override {
    asked.push_back(resource.version + " " + ns);
    if (asked.size() <= first.size()) return tl::unexpected(first[asked.size() - 1]);
    if (resource.version == served) return kube::List{};
    return tl::unexpected(otherwise);
  }
};

TEST(ServedPodGroupsTest, TheNewestVersionThatIsServed) {
  for (const kube::Resource& version : PodGroupVersions()) {
    OneVersionApi api;
    api.served = version.version;
    EXPECT_EQ(ServedPodGroups(api, {}, {}), version);
  }
  OneVersionApi none;
  EXPECT_EQ(ServedPodGroups(none, {"team"}, {}), std::nullopt);
  EXPECT_EQ(none.asked.size(), PodGroupVersions().size());
  EXPECT_EQ(none.asked[0], "v1beta1 team");
  OneVersionApi two;
  two.served = PodGroupVersions().front().version;
  EXPECT_TRUE(ServedPodGroups(two, {"team", "other"}, {}));
  EXPECT_THAT(two.asked, ::testing::ElementsAre("v1beta1 team", "v1beta1 other"))
      << "it has to be allowed in all of them";
}

TEST(ServedPodGroupsTest, OnesThatMayNotBeReadAreNotUsed) {
  OneVersionApi api;
  api.otherwise = {.code = kube::ErrorCode::kForbidden, .http_status = 403};
  EXPECT_EQ(ServedPodGroups(api, {}, {}), std::nullopt);
  EXPECT_EQ(api.asked.size(), 1u) << "served, but not to us: an older version would not be either";
}

TEST(ServedPodGroupsTest, AnApiServerThatFailsIsAskedAgain) {
  OneVersionApi api;
  api.served = PodGroupVersions().front().version;
  api.first = {{.code = kube::ErrorCode::kForbidden, .http_status = 401, .message = "an old token"},
               {.code = kube::ErrorCode::kUnavailable, .message = "no connection"}};
  EXPECT_EQ(ServedPodGroups(api, {}, {}, std::chrono::milliseconds(1)), PodGroupVersions().front());
  EXPECT_EQ(api.asked.size(), 3u);
}

TEST(ServedPodGroupsTest, AnApiServerThatGoesOnFailingIsNotAskedForEver) {
  OneVersionApi api;
  api.otherwise = {.code = kube::ErrorCode::kUnavailable, .message = "no connection"};
  EXPECT_EQ(ServedPodGroups(api, {}, {}, std::chrono::milliseconds(1)), std::nullopt);
  EXPECT_EQ(api.asked.size(), static_cast<std::size_t>(kAskings));
}

TEST(PodGroupTest, CountsToMinReplicasWithThePriorityOfThePods) {
  const kube::Resource& version = PodGroupVersions().front();
  Json group = BuildPodGroup(Job(), version);
  EXPECT_EQ(group["apiVersion"], "scheduling.k8s.io/v1beta1");
  EXPECT_EQ(group["metadata"]["name"], "digits-u");
  EXPECT_EQ(group["metadata"]["ownerReferences"][0]["uid"], "u");
  EXPECT_EQ(group["spec"], Json::parse(R"({"schedulingPolicy":{"gang":{"minCount":3}}})"));
  const Json high = {{"runPolicy", {{"schedulingPolicy", {{"priorityClass", "high"}}}}}};
  EXPECT_EQ(BuildPodGroup(Job(high), version)["spec"]["priorityClassName"], "high");
}

TEST(PodGroupTest, KeepsThePriorityThatItWasMadeWith) {
  const kube::Resource& version = PodGroupVersions().front();
  const auto with = [&](const std::string& priority) {
    return BuildPodGroup(
        Job({{"runPolicy", {{"schedulingPolicy", {{"priorityClass", priority}}}}}}), version);
  };
  for (const std::string before : {"", "low"}) {
    Json wanted = with("high");
    KeepWhatIsFixed(with(before), &wanted);
    EXPECT_EQ(wanted, with(before));
  }
}

TEST(PodGroupTest, IsForJobsThatAskForNothingElse) {
  EXPECT_TRUE(SuitsPodGroup(Job()));
  EXPECT_FALSE(SuitsPodGroup(Job({{"elasticPolicy", {{"allowedSizes", {3, 4}}}}})));
  const auto with = [](const Json& policy) {
    return Job({{"runPolicy", {{"schedulingPolicy", policy}}}});
  };
  EXPECT_FALSE(SuitsPodGroup(with({{"queue", "q"}})));
  EXPECT_FALSE(SuitsPodGroup(with({{"topology", {{"preferred", "rack"}}}})));
}

TEST(PodGroupTest, IsUsedWhenNoPodIsOfATimeBefore) {
  planner::Snapshot snapshot{.job = Job()};
  EXPECT_TRUE(MayUsePodGroup(snapshot));
  snapshot.pods.push_back({.name = "digits-worker-0", .grouped = true});
  EXPECT_TRUE(MayUsePodGroup(snapshot));
  snapshot.pods.push_back({.name = "digits-worker-1"});
  EXPECT_FALSE(MayUsePodGroup(snapshot));
  snapshot.pods[1].phase = planner::PodPhase::kFailed;
  EXPECT_TRUE(MayUsePodGroup(snapshot)) << "it takes no part any more";
}

class PodGroupControllerTest : public JobControllerTest {
 protected:
  void SetUp() override {
    options_.gang_admission = options_.pod.counted = true;
    options_.child_objects.emplace();
    options_.child_objects->pod_groups = PodGroupVersions().front();
    ASSERT_NO_FATAL_FAILURE(JobControllerTest::SetUp());
  }
  Json Group() {
    const auto groups = api_->ListAll(PodGroupVersions().front(), ns_, {});
    return groups && groups->items.size() == 1 ? groups->items.front() : Json();
  }
  bool WaitsForRoom() {
    const api::Status status = Status();
    const auto* scheduled = status.Find("Scheduled");
    return scheduled != nullptr && scheduled->reason == "WaitingForRoom";
  }
  int MinCount() { return Group().value("/spec/schedulingPolicy/gang/minCount"_json_pointer, 0); }
};

// There is no node that our own admission could count.
TEST_P(PodGroupControllerTest, PodsAreMadeAtOnceAndNameTheGroup) {
  Apply(3, {{"elasticPolicy", {{"minReplicas", 2}}}});
  ASSERT_TRUE(TrainsAs({0, 1, 2}));
  EXPECT_EQ(MinCount(), 2);
  for (const std::string& name : Names({0, 1, 2})) {
    const Json pod = PodObject(name);
    EXPECT_EQ(pod["spec"]["schedulingGroup"]["podGroupName"], Group()["metadata"]["name"]);
  }
  // The group follows the spec, and new pods join it.
  Change({{"worker", {{"replicas", 5}}}, {"elasticPolicy", {{"minReplicas", 4}}}});
  ASSERT_TRUE(TrainsAs({0, 1, 2, 3, 4}));
  EXPECT_TRUE(Eventually([&] { return MinCount() == 4; }));
  EXPECT_TRUE(PodObject("digits-worker-4")["spec"].contains("schedulingGroup"));
  pods_->EndPod("digits-worker-1", 137);
  ASSERT_TRUE(TrainsAsOneOf({{0, 2, 3, 4, 5}, {0, 1, 2, 3, 4}}));
}

TEST_P(PodGroupControllerTest, AJobWithAllowedSizesStaysInOurLine) {
  Apply(2, {{"elasticPolicy", {{"allowedSizes", {2, 4}}}}});
  ASSERT_TRUE(Eventually([&] { return WaitsForRoom(); }));
  EXPECT_TRUE(Pods().empty());
  EXPECT_TRUE(Group().is_null());
}

// A pod whose group doesn't exist never starts.
TEST_P(PodGroupControllerTest, NoPodIsMadeBeforeTheGroupIsThere) {
  door_->Refuse(PodGroupVersions().front(),
                kube::Error{.code = kube::ErrorCode::kUnavailable, .message = "busy"});
  Apply(2);
  // A reconcile creates pods before it writes the status.
  ASSERT_TRUE(Eventually([&] { return Status().Find("Scheduled") != nullptr; }));
  EXPECT_EQ(door_->pod_creates(), 0);
  door_->Refuse(PodGroupVersions().front(), std::nullopt);
  ASSERT_TRUE(TrainsAs({0, 1}));
  EXPECT_EQ(PodObject("digits-worker-1")["spec"]["schedulingGroup"]["podGroupName"],
            Group()["metadata"]["name"]);
}

// So it does at each look, also while the operator waits before it tries again.
TEST_P(PodGroupControllerTest, WhereOneIsRefusedTheJobKeepsItsPlaceInOurLineAndTrains) {
  door_->Refuse(PodGroupVersions().front(), kube::Error{.code = kube::ErrorCode::kForbidden,
                                                        .http_status = 403,
                                                        .message = "exceeded quota"});
  Apply(2);
  ASSERT_TRUE(Eventually([&] { return WaitsForRoom(); }));
  // Each of these looks falls into such a pause.
  for (int seconds = 100; seconds < 110; ++seconds) {
    const auto generation = Status().observed_generation;
    Change({{"runPolicy", {{"ttlSecondsAfterFinished", seconds}}}});
    ASSERT_TRUE(Eventually([&] { return Status().observed_generation > generation; }));
    EXPECT_TRUE(WaitsForRoom());
  }
  ASSERT_TRUE(api_->Create(kube::Nodes(), "",
                           {{"metadata", {{"name", node_}}},
                            {"status", {{"allocatable", {{"cpu", "8"}, {"pods", "110"}}}}}}));
  EXPECT_TRUE(TrainsAs({0, 1}));
}

TEST_P(PodGroupControllerTest, WhereNoneCanBeMadeTheJobStandsInOurLine) {
  door_->Refuse(PodGroupVersions().front(),
                kube::Error{.code = kube::ErrorCode::kNotFound,
                            .http_status = 404,
                            .message = "the API server serves this version no more"});
  Apply(2);
  ASSERT_TRUE(Eventually([&] { return WaitsForRoom(); }));
  EXPECT_TRUE(Pods().empty());
}

INSTANTIATE_TEST_SUITE_P(Servers, PodGroupControllerTest,
                         ::testing::Values(local::testing::Backends().front()),
                         local::testing::NameOf);

}  // namespace
}  // namespace ringmaster::controllers
