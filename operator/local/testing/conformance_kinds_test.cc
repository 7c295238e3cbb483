// What only some kinds do: pods, evictions and budgets, leases, events.
#include "operator/local/testing/conformance_fixture.h"

namespace ringmaster::local::testing {
namespace {

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

TEST_P(KubeConformance, AGatedPodCanBeNarrowedToSomeNodesAsItsGateGoes) {
  MustCreate(kube::Pods(), Pod("p"));
  const Json there = {{"key", "rack"}, {"operator", "In"}, {"values", {"a"}}};
  const Json affinity = {
      {"nodeAffinity",
       {{"preferredDuringSchedulingIgnoredDuringExecution",
         {{{"weight", 100}, {"preference", {{"matchExpressions", Json::array({there})}}}}}}}}};
  const auto narrowed = api().Patch(
      kube::Pods(), ns_, "p",
      {{"spec",
        {{"schedulingGates", nullptr}, {"nodeSelector", {{"rack", "a"}}}, {"affinity", affinity}}}},
      {});
  ASSERT_TRUE(narrowed.has_value()) << narrowed.error().message;
  EXPECT_FALSE((*narrowed)["spec"].contains("schedulingGates"));
  EXPECT_EQ((*narrowed)["spec"]["nodeSelector"], Json({{"rack", "a"}}));
  const auto again =
      api().Patch(kube::Pods(), ns_, "p", {{"spec", {{"nodeSelector", {{"rack", "b"}}}}}}, {});
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::kInvalid);
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

TEST_P(KubeConformance, APodsStatusIsWrittenThroughItsSubresource) {
  Json pod = MustCreate(kube::Pods(), Pod("p"));
  EXPECT_EQ(pod["metadata"]["generation"], 1);
  pod["status"]["phase"] = "Running";
  auto updated = api().Update(kube::Pods(), ns_, pod);
  ASSERT_TRUE(updated.has_value()) << updated.error().message;
  EXPECT_EQ((*updated)["status"]["phase"], "Pending");
  auto status = api().Update(kube::Pods(), ns_, pod, "status");
  // The update before changed nothing, so the version still stands.
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ((*status)["status"]["phase"], "Running");
  EXPECT_EQ((*status)["metadata"]["generation"], 1);
}

TEST_P(KubeConformance, BadPodsAreInvalidAndTheFieldIsNamed) {
  struct Case {
    const char* pointer;
    Json value;
    const char* field;
  };
  for (const Case& c : std::vector<Case>{
           {"/spec/containers", Json::array(), "spec.containers: Required value"},
           {"/spec/containers/0/name", "Bad_Name", "spec.containers[0].name: Invalid value"},
           {"/spec/containers/0/image", "", "spec.containers[0].image: Required value"},
           {"/spec/restartPolicy", "Sometimes", "spec.restartPolicy: Unsupported value"},
           {"/spec/containers/0/volumeMounts",
            {{{"name", "nope"}, {"mountPath", "/x"}}},
            "spec.containers[0].volumeMounts[0].name: Not found: \"nope\""}}) {
    Json pod = Pod("p");
    pod[Json::json_pointer(c.pointer)] = c.value;
    auto error = Refused(api().Create(kube::Pods(), ns_, pod));
    EXPECT_EQ(error.code, ErrorCode::kInvalid) << c.field;
    EXPECT_THAT(error.message, HasSubstr(c.field));
  }
}

TEST_P(KubeConformance, ANativeSidecarKeepsItsRestartPolicy) {
  Json pod = Pod("p");
  pod["spec"]["initContainers"] = {
      {{"name", "sidecar"}, {"image", "none"}, {"restartPolicy", "Always"}}};
  Json made = MustCreate(kube::Pods(), pod);
  EXPECT_EQ(made["spec"]["initContainers"][0]["restartPolicy"], "Always");
}

TEST_P(KubeConformance, LeasesNeedAPositiveDurationAndTimesWithMicroseconds) {
  auto lease = [](Json spec) {
    return Json{{"metadata", {{"name", "leader"}}}, {"spec", std::move(spec)}};
  };
  auto error = Refused(api().Create(kube::Leases(), ns_,
                                    lease({{"holderIdentity", "a"}, {"leaseDurationSeconds", 0}})));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("spec.leaseDurationSeconds: Invalid value: 0"));
  for (const char* time : {"2026-01-01T00:00:00Z", "yesterday"}) {
    auto bad = Refused(api().Create(kube::Leases(), ns_, lease({{"renewTime", time}})));
    EXPECT_EQ(bad.code, ErrorCode::kInvalid) << time;
    EXPECT_EQ(bad.http_status, 400) << time;
  }
  Json made = MustCreate(kube::Leases(), lease({{"holderIdentity", "a"},
                                                {"leaseDurationSeconds", 15},
                                                {"renewTime", "2026-01-01T00:00:00.000000Z"}}));
  EXPECT_EQ(made["spec"]["renewTime"], "2026-01-01T00:00:00.000000Z");
}

TEST_P(KubeConformance, EventsNeedTheirTimeAndAKnownType) {
  Json event = {{"metadata", {{"name", "e"}}},
                {"eventTime", "2026-01-01T00:00:00.000000Z"},
                {"reportingController", "ringmaster.dev/operator"},
                {"reportingInstance", "me"},
                {"action", "Created"},
                {"reason", "PodCreated"},
                {"type", "Normal"},
                {"note", "made a pod"},
                {"regarding", {{"kind", "Pod"}, {"name", "p"}, {"namespace", ns_}}}};
  for (auto [field, value] : std::vector<std::pair<const char*, Json>>{{"eventTime", nullptr},
                                                                       {"type", "Funny"},
                                                                       {"reportingController", ""},
                                                                       {"action", ""},
                                                                       {"reason", ""}}) {
    Json bad = event;
    bad[field] = value;
    auto error = Refused(api().Create(kube::Events(), ns_, bad));
    EXPECT_EQ(error.code, ErrorCode::kInvalid) << field;
    EXPECT_THAT(error.message, HasSubstr(field));
  }
  Json made = MustCreate(kube::Events(), event);
  // A series: what an aggregating recorder writes.
  auto again = api().Patch(
      kube::Events(), ns_, "e",
      {{"series", {{"count", 2}, {"lastObservedTime", "2026-01-01T00:01:00.000000Z"}}}}, {});
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ((*again)["series"]["count"], 2);
  EXPECT_EQ((*again)["note"], "made a pod");
}

TEST_P(KubeConformance, SecretsTakePlainTextAndGiveBase64) {
  Json secret =
      MustCreate(kube::Secrets(), {{"metadata", {{"name", "s"}}}, {"stringData", {{"a", "text"}}}});
  EXPECT_EQ(secret["data"]["a"], "dGV4dA==");
  EXPECT_FALSE(secret.contains("stringData"));
  EXPECT_EQ(secret["type"], "Opaque");
  auto bad = Refused(api().Create(kube::Secrets(), ns_,
                                  {{"metadata", {{"name", "t"}}}, {"data", {{"a", "***"}}}}));
  EXPECT_EQ(bad.code, ErrorCode::kInvalid);
  EXPECT_EQ(bad.http_status, 400);
}

TEST_P(KubeConformance, ImmutableConfigMapsStayAsTheyAre) {
  Json object = ConfigMap("a");
  object["immutable"] = true;
  MustCreate(kube::ConfigMaps(), object);
  auto error = Refused(api().Patch(kube::ConfigMaps(), ns_, "a", {{"data", {{"k", "other"}}}}, {}));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("field is immutable when `immutable` is set"));
}

TEST_P(KubeConformance, NetworkPoliciesAndHeadlessServicesAreKept) {
  Json policy = MustCreate(
      kube::NetworkPolicies(),
      {{"metadata", {{"name", "n"}}},
       {"spec",
        {{"podSelector", {{"matchLabels", {{"app", "x"}}}}}, {"policyTypes", {"Ingress"}}}}});
  EXPECT_EQ(policy["metadata"]["generation"], 1);
  EXPECT_EQ(policy["spec"]["podSelector"]["matchLabels"]["app"], "x");
  Json service = MustCreate(kube::Services(), {{"metadata", {{"name", "s"}}},
                                               {"spec",
                                                {{"clusterIP", "None"},
                                                 {"publishNotReadyAddresses", true},
                                                 {"selector", {{"app", "x"}}}}}});
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  EXPECT_EQ(service["spec"]["type"], "ClusterIP");
  EXPECT_EQ(service["spec"]["publishNotReadyAddresses"], true);
}

TEST_P(KubeConformance, AServiceNeedsPortsUnlessItIsHeadless) {
  auto service = [](Json spec) {
    return Json{{"metadata", {{"name", "s"}}}, {"spec", std::move(spec)}};
  };
  auto error =
      Refused(api().Create(kube::Services(), ns_, service({{"selector", {{"app", "x"}}}})));
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.message, HasSubstr("spec.ports: Required value"));
  Json made = MustCreate(kube::Services(), service({{"ports", {{{"port", 80}}}}}));
  made["spec"]["ports"] = Json::array();
  EXPECT_EQ(Refused(api().Update(kube::Services(), ns_, made)).code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace ringmaster::local::testing
