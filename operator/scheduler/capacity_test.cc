#include "operator/scheduler/capacity.h"

#include <gtest/gtest.h>

#include "operator/api/object_key.h"
#include "operator/scheduler/node_rules.h"
#include "operator/scheduler/quantity.h"
#include "operator/scheduler/testing/fit_together.h"
#include "operator/scheduler/testing/place_of.h"
#include "operator/scheduler/what_if.h"

namespace ringmaster::scheduler {
namespace {

Json Node(const std::string& name, const Json& allocatable, const Json& changes = Json::object()) {
  Json node = {{"metadata", {{"name", name}, {"labels", {{"pool", name}}}}},
               {"spec", Json::object()},
               {"status", {{"allocatable", allocatable}}}};
  node["status"]["allocatable"].emplace("pods", "110");
  node.merge_patch(changes);
  return node;
}

Json Pod(const std::string& uid, const Json& requests, const Json& spec = Json::object()) {
  Json pod = {{"metadata", {{"name", uid}, {"uid", uid}}},
              {"spec", {{"containers", {{{"resources", {{"requests", requests}}}}}}}}};
  pod["spec"].merge_patch(spec);
  return pod;
}

const Json kOneGpu = {{"nvidia.com/gpu", "1"}};

TEST(QuantityTest, ReadsWhatKubernetesWrites) {
  EXPECT_DOUBLE_EQ(ParseQuantity("1500m"), 1.5);
  EXPECT_DOUBLE_EQ(ParseQuantity("4Gi"), 4.0 * (1 << 30));
  EXPECT_DOUBLE_EQ(ParseQuantity("1e3"), 1000);
  EXPECT_DOUBLE_EQ(ParseQuantity(2), 2);
  EXPECT_DOUBLE_EQ(ParseQuantity("many"), 0);
  EXPECT_DOUBLE_EQ(ParseQuantity("-1"), 0);
  EXPECT_DOUBLE_EQ(ParseQuantity("-1e999"), 0);
  EXPECT_DOUBLE_EQ(ParseQuantity("nan"), 0);
  EXPECT_DOUBLE_EQ(ParseQuantity(-2), 0);
}

Json WithRequests(const Json& requests) { return {{"resources", {{"requests", requests}}}}; }
Json SidecarWithRequests(const Json& requests) {
  Json sidecar = WithRequests(requests);
  sidecar["restartPolicy"] = "Always";
  return sidecar;
}

struct RequestsCase {
  std::string name;
  Json init;       // its init containers
  Json spec;       // the rest of the pod, beside a container that requests 1 CPU and 1Gi
  double cpu = 0;  // all containers together
  double gib = 1;  // of memory
};

class RequestsTable : public testing::TestWithParam<RequestsCase> {};

TEST_P(RequestsTable, AreWhatKubernetesCounts) {
  Json pod = Pod("a", {{"cpu", "1"}, {"memory", "1Gi"}}, GetParam().spec);
  pod["spec"]["initContainers"] = GetParam().init;
  const Amounts requests = RequestsOf(pod);
  EXPECT_DOUBLE_EQ(requests.at("cpu"), GetParam().cpu);
  EXPECT_DOUBLE_EQ(requests.at("memory"), GetParam().gib * (1 << 30));
  EXPECT_DOUBLE_EQ(requests.at("pods"), 1);
}

// By the formula of KEP-753, "Resources calculation for scheduling and pod admission":
//   InitContainerUse(i) = sum(sidecars with index < i) + InitContainer(i)
//   max(max(InitContainerUse(i)), sum(sidecars) + sum(containers)) + overhead
// and KEP-2837 for what spec.resources says.
INSTANTIATE_TEST_SUITE_P(
    Kubernetes, RequestsTable,
    testing::Values(
        RequestsCase{"Alone", Json::array(), Json::object(), 1},
        RequestsCase{"SidecarsRunBeside",
                     Json::array({SidecarWithRequests({{"cpu", "250m"}}),
                                  SidecarWithRequests({{"cpu", "500m"}})}),
                     Json::object(), 1.75},
        RequestsCase{"InitContainersRunOneAfterTheOther",
                     Json::array({WithRequests({{"cpu", "2"}}), WithRequests({{"cpu", "3"}}),
                                  WithRequests({{"cpu", "2"}})}),
                     Json::object(), 3},
        RequestsCase{"EachResourceByItself",
                     Json::array({WithRequests({{"cpu", "500m"}, {"memory", "3Gi"}})}),
                     Json::object(), 1, 3},
        RequestsCase{
            "AnInitContainerRunsBesideTheSidecarsBeforeIt",
            Json::array({SidecarWithRequests({{"cpu", "250m"}}),
                         SidecarWithRequests({{"cpu", "250m"}}), WithRequests({{"cpu", "2"}})}),
            Json::object(), 2.5},
        RequestsCase{
            "AndNotBesideThoseAfterIt",
            Json::array({WithRequests({{"cpu", "2"}}), SidecarWithRequests({{"cpu", "250m"}})}),
            Json::object(), 2},
        RequestsCase{
            "TheLargestNeedNotBeTheLast",
            Json::array({SidecarWithRequests({{"cpu", "1"}}), WithRequests({{"cpu", "4"}}),
                         SidecarWithRequests({{"cpu", "1"}}), WithRequests({{"cpu", "2"}})}),
            Json::object(), 5},
        RequestsCase{
            "AResourceThatOnlyASidecarHasCountsBesideInit",
            Json::array({SidecarWithRequests({{"memory", "2Gi"}}), WithRequests({{"cpu", "2"}})}),
            Json::object(), 2, 3},
        RequestsCase{"OverheadIsAdded",
                     Json::array({WithRequests({{"cpu", "2"}})}),
                     {{"overhead", {{"cpu", "100m"}, {"memory", "1Gi"}}}},
                     2.1,
                     2},
        RequestsCase{
            "ThePodsOwnComeFirst",
            Json::array({WithRequests({{"cpu", "8"}}), SidecarWithRequests({{"memory", "5Gi"}})}),
            WithRequests({{"cpu", "9"}}), 9, 6},
        RequestsCase{"OfEachResourceThatThePodNames",
                     Json::array({SidecarWithRequests({{"memory", "5Gi"}})}),
                     WithRequests({{"cpu", "4"}, {"memory", "7Gi"}}), 4, 7},
        RequestsCase{"OverheadIsAddedToThePodsOwnToo",
                     Json::array(),
                     {{"resources", {{"requests", {{"cpu", "4"}}}}}, {"overhead", {{"cpu", "1"}}}},
                     5}),
    [](const auto& info) { return info.param.name; });

TEST(RequestsTest, APodAsAWholeAsksForNothingButCpuMemoryAndHugePages) {
  const Json whole = {
      {"nvidia.com/gpu", "7"}, {"ephemeral-storage", "7"}, {"hugepages-2Mi", "4Mi"}};
  const Amounts requests = RequestsOf(Pod("a", kOneGpu, WithRequests(whole)));
  EXPECT_EQ(requests, (Amounts{{"hugepages-2Mi", 4 << 20}, {"nvidia.com/gpu", 1}, {"pods", 1}}));
}

class CapacityTest : public testing::Test {
 protected:
  CapacityTest() {
    capacity_.SetNode(Node("a", {{"cpu", "8"}, {"nvidia.com/gpu", "2"}}));
    capacity_.SetNode(Node("b", {{"cpu", "4"}, {"nvidia.com/gpu", "1"}}));
  }
  int Fit(int pods, const Json& requests = kOneGpu, const Json& spec = Json::object()) {
    std::vector<Json> gang;
    for (int i = 0; i < pods; ++i) gang.push_back(Pod("g" + std::to_string(i), requests, spec));
    why_.clear();
    return FitTogether(capacity_, gang, &why_);
  }
  Capacity capacity_;
  std::string why_;
};

TEST_F(CapacityTest, AnyResourceMayBeCountedInBytes) {
  capacity_.SetNode(Node("enclaves", {{"sgx.intel.com/epc", "64Gi"}}));
  EXPECT_EQ(Fit(200, {{"sgx.intel.com/epc", "512Mi"}}), 110) << "as many pods as a node may have";
}

// As the controller of DaemonSets writes it.
TEST_F(CapacityTest, APodOfADaemonSetFitsOnItsNodeAlone) {
  const auto on = [](const std::string& node) {
    Json affinity = Json::parse(R"({"affinity": {"nodeAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields":
        [{"key": "metadata.name", "operator": "In", "values": []}]}]}}}})");
    affinity["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            ["nodeSelectorTerms"][0]["matchFields"][0]["values"] = {node};
    return affinity;
  };
  EXPECT_EQ(Fit(3, kOneGpu, on("a")), 2);
  EXPECT_EQ(Fit(3, kOneGpu, on("b")), 1);
  EXPECT_EQ(Fit(1, kOneGpu, on("none")), 0);
  EXPECT_EQ(why_, "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.");
}

TEST_F(CapacityTest, AGangFitsOverSeveralNodesAndSaysWhyTheNextPodDoesnt) {
  EXPECT_EQ(Fit(3), 3);
  EXPECT_EQ(why_, "");
  EXPECT_EQ(Fit(4), 3);
  EXPECT_EQ(why_, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
}

TEST_F(CapacityTest, WhatRunsAlreadyTakesItsShareUntilItEnds) {
  Json running = Pod("x", kOneGpu, {{"nodeName", "a"}});
  capacity_.SetPod(running);
  EXPECT_EQ(Fit(3), 2);
  capacity_.SetPod(running);
  EXPECT_EQ(Fit(3), 2) << "said twice, counted once";
  running["status"]["phase"] = "Succeeded";
  capacity_.SetPod(running);
  EXPECT_EQ(Fit(3), 3);
}

TEST_F(CapacityTest, WhoWaitsForTheSchedulerComesFirstUnlessItIsGatedOrGoing) {
  capacity_.SetPod(Pod("x", kOneGpu));
  EXPECT_EQ(Fit(3), 2);
  capacity_.SetPod(Pod("x", kOneGpu, {{"schedulingGates", {{{"name", "wait"}}}}}));
  EXPECT_EQ(Fit(3), 3);
  Json going = Pod("x", kOneGpu);
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  capacity_.SetPod(going);
  EXPECT_EQ(Fit(3), 3);
  capacity_.SetPod(Pod("giant", {{"nvidia.com/gpu", "99"}}));
  EXPECT_EQ(Fit(3), 3) << "a pod that fits nowhere takes nothing";
}

// The pod that is tried may have a place already, or be one that waits for the scheduler.
TEST_F(CapacityTest, WhatIsTriedLeavesEverythingAsItWas) {
  const Json has_place = Pod("x", kOneGpu), waits = Pod("y", {{"nvidia.com/gpu", "9"}});
  capacity_.SetPod(has_place);
  capacity_.PlaceFloating();
  capacity_.SetPod(waits);
  const std::string path = api::KeyOf(has_place);
  ASSERT_TRUE(capacity_.held().Has(path));
  const std::string node = capacity_.held().Find(path)->node;
  const std::uint64_t growth = capacity_.growth();
  {
    WhatIf what_if(&capacity_);
    what_if.Hold(has_place, capacity_.shapes().Of(has_place), node == "a" ? "b" : "a", "job");
    what_if.Hold(has_place, capacity_.shapes().Of(has_place), node, "job");
    what_if.Hold(waits, capacity_.shapes().Of(waits), "a", "job");
    EXPECT_EQ(capacity_.held().Find(path)->job, "job");
  }
  EXPECT_EQ(capacity_.growth(), growth);
  EXPECT_EQ(capacity_.held().size(), 1u);
  ASSERT_TRUE(capacity_.held().Has(path));
  EXPECT_EQ(capacity_.held().Find(path)->node, node);
  EXPECT_EQ(capacity_.held().Find(path)->job, "");
  EXPECT_EQ(Fit(3), 2) << "the place is taken";
  capacity_.SetNode(Node("large", {{"nvidia.com/gpu", "9"}}));
  capacity_.PlaceFloating();
  EXPECT_TRUE(capacity_.held().Has(api::KeyOf(waits))) << "it waits still";
}

TEST_F(CapacityTest, NodesThatRefuseAreLeftOut) {
  capacity_.SetNode(Node("a", {{"nvidia.com/gpu", "2"}}, {{"spec", {{"unschedulable", true}}}}));
  EXPECT_EQ(Fit(3), 1);
  capacity_.SetNode(Node("a", {{"nvidia.com/gpu", "2"}},
                         {{"spec", {{"taints", {{{"key", "gpu"}, {"effect", "NoSchedule"}}}}}}}));
  EXPECT_EQ(Fit(3), 1);
  EXPECT_NE(why_.find("untolerated taint {gpu"), std::string::npos) << why_;
  EXPECT_EQ(Fit(3, kOneGpu, {{"tolerations", {{{"key", "gpu"}, {"operator", "Exists"}}}}}), 3);
  capacity_.RemoveNode("a");
  EXPECT_EQ(Fit(3), 1);
}

TEST_F(CapacityTest, APodThatToleratesACordonFitsOnACordonedNode) {
  for (const char* name : {"a", "b"}) {
    capacity_.SetNode(Node(name, {{"nvidia.com/gpu", "1"}}, {{"spec", {{"unschedulable", true}}}}));
  }
  EXPECT_EQ(Fit(2), 0);
  EXPECT_NE(why_.find("2 node(s) were unschedulable"), std::string::npos) << why_;
  EXPECT_EQ(Fit(2, kOneGpu, {{"tolerations", {{{"operator", "Exists"}}}}}), 2);
  const Json of_another = {{"key", "gpu"}, {"operator", "Exists"}};
  EXPECT_EQ(Fit(2, kOneGpu, {{"tolerations", {of_another}}}), 0);
}

TEST(TolerationTest, NonsenseToleratesNothing) {
  const Taint taint{"gpu", "", "NoSchedule"};
  for (const Json& tolerations : {Json(nullptr), Json(3), Json{3}, Json{nullptr, "gpu"}}) {
    EXPECT_FALSE(Tolerates({{"spec", {{"tolerations", tolerations}}}}, taint)) << tolerations;
  }
  EXPECT_FALSE(Tolerates(Json(), taint));
}

TEST_F(CapacityTest, SelectorsAndRequiredAffinityChooseNodes) {
  EXPECT_EQ(Fit(3, kOneGpu, {{"nodeSelector", {{"pool", "b"}}}}), 1);
  const auto affinity = [](const Json& requirement) {
    return Json{{"affinity",
                 {{"nodeAffinity",
                   {{"requiredDuringSchedulingIgnoredDuringExecution",
                     {{"nodeSelectorTerms", {{{"matchExpressions", {requirement}}}}}}}}}}}};
  };
  EXPECT_EQ(Fit(3, kOneGpu, affinity({{"key", "pool"}, {"operator", "In"}, {"values", {"a"}}})), 2);
  EXPECT_EQ(Fit(3, kOneGpu, affinity({{"key", "pool"}, {"operator", "NotIn"}, {"values", {"a"}}})),
            1);
  EXPECT_EQ(Fit(3, kOneGpu, affinity({{"key", "none"}, {"operator", "Exists"}})), 0);
  EXPECT_EQ(Fit(3, kOneGpu, affinity({{"key", "none"}, {"operator", "DoesNotExist"}})), 3);
}

TEST_F(CapacityTest, ANodeTakesNoMorePodsThanItsLimit) {
  capacity_.SetNode(Node("a", {{"cpu", "8"}, {"pods", "1"}}));
  capacity_.RemoveNode("b");
  EXPECT_EQ(Fit(2, {{"cpu", "1m"}}), 1);
  EXPECT_EQ(why_, "0/1 nodes are available: 1 Insufficient pods.");
}

TEST(NodeResourcesTest, OfManyReasonsTheMostFrequentAreNamed) {
  NodeResources nodes;
  for (int i = 0; i < 1000; ++i) {
    const Json taint = {{"key", "t" + std::to_string(i)}, {"value", ""}, {"effect", "NoSchedule"}};
    nodes.Set(Node("n" + std::to_string(i), {{"cpu", "1"}}, {{"spec", {{"taints", {taint}}}}}));
  }
  for (int i = 0; i < 3; ++i) nodes.Set(Node("cpu" + std::to_string(i), {{"cpu", "1"}}));
  const auto place = nodes.Place(*nodes.shapes().Of(Pod("x", kOneGpu)));
  ASSERT_FALSE(place);
  EXPECT_LT(place.error().size(), 400u);
  EXPECT_NE(place.error().find(": 3 Insufficient nvidia.com/gpu, "), std::string::npos);
  EXPECT_NE(place.error().find(" and 996 more reasons."), std::string::npos) << place.error();
}

TEST_F(CapacityTest, AFailedPodTakesNothing) {
  Json failed = Pod("x", kOneGpu, {{"nodeName", "a"}});
  failed["status"]["phase"] = "Failed";
  capacity_.SetPod(failed);
  EXPECT_EQ(Fit(3), 3);
}

TEST_F(CapacityTest, WhatANodeHasLostItHasNoMore) {
  capacity_.SetNode(Node("a", {{"cpu", "8"}}));
  EXPECT_EQ(Fit(3), 1);
}

TEST_F(CapacityTest, NothingOfAResourceIsEverywhere) {
  // More than the node has.
  capacity_.SetPod(Pod("x", {{"nvidia.com/gpu", "3"}}, {{"nodeName", "a"}}));
  capacity_.RemoveNode("b");
  EXPECT_EQ(Fit(1, {{"nvidia.com/gpu", "0"}}), 1);
}

TEST_F(CapacityTest, TheNodeWithTheMostFreeCpuIsTaken) {
  capacity_.SetNode(Node("c", {{"cpu", "16"}}));
  EXPECT_EQ(PlaceOf(&capacity_, Pod("x", {{"cpu", "1"}})), "c");
}

TEST_F(CapacityTest, ANodeWithoutPodsHasWhatItHas) {
  EXPECT_EQ(Fit(1, {{"cpu", "8"}}), 1);
  EXPECT_EQ(Fit(1, {{"cpu", "9"}}), 0);
}

TEST_F(CapacityTest, TenthsAddUp) {
  capacity_.RemoveNode("b");
  capacity_.SetNode(Node("a", {{"cpu", "1"}}));
  for (const char* name : {"x", "y", "z"}) {
    capacity_.SetPod(Pod(name, {{"cpu", "100m"}}, {{"nodeName", "a"}}));
  }
  EXPECT_EQ(Fit(1, {{"cpu", "700m"}}), 1);
}

TEST_F(CapacityTest, APodThatAsksForMoreThanAnyMachineHasLeavesOthersAsTheyWere) {
  capacity_.SetPod(
      Pod("x", {{"cpu", "100m"}, {"nvidia.com/gpu", "1"}, {"memory", "1"}}, {{"nodeName", "a"}}));
  const Amounts before = capacity_.nodes().used().at("a");
  for (const char* amount : {"9e18", "1e999", "-1e999", "9223372036854775807", "-5", "1E"}) {
    capacity_.SetPod(Pod("huge", {{"cpu", amount}, {"nvidia.com/gpu", amount}, {"memory", amount}},
                         {{"nodeName", "a"}}));
    capacity_.RemovePod("huge");
    for (const auto& [resource, n] : before)
      EXPECT_NEAR(capacity_.nodes().used().at("a").at(resource), n, kRounding / 100)
          << resource << " after " << amount;
  }
}

// ---- Rules of nodes, and what pods tolerate.

struct RuleCase {
  std::string name;
  Json taint;       // of both nodes; null: none
  Json toleration;  // of the pod; null: none
  bool fits;
};

class TolerationTable : public CapacityTest, public testing::WithParamInterface<RuleCase> {};

TEST_P(TolerationTable, SaysWhoFits) {
  for (const char* name : {"a", "b"}) {
    capacity_.SetNode(
        Node(name, {{"cpu", "8"}}, {{"spec", {{"taints", Json::array({GetParam().taint})}}}}));
  }
  Json spec = Json::object();
  if (!GetParam().toleration.is_null()) spec["tolerations"] = Json::array({GetParam().toleration});
  EXPECT_EQ(Fit(1, {{"cpu", "1"}}, spec), GetParam().fits ? 1 : 0) << why_;
}

Json Taint(const char* effect) { return {{"key", "gpu"}, {"value", "big"}, {"effect", effect}}; }

INSTANTIATE_TEST_SUITE_P(
    NodeRules, TolerationTable,
    testing::Values(
        RuleCase{"None", Taint("NoSchedule"), nullptr, false},
        RuleCase{"APreferenceNeedsNone", Taint("PreferNoSchedule"), nullptr, true},
        RuleCase{"OfItsValue", Taint("NoSchedule"), {{"key", "gpu"}, {"value", "big"}}, true},
        RuleCase{"OfAnotherValue", Taint("NoSchedule"), {{"key", "gpu"}, {"value", "x"}}, false},
        RuleCase{"OfAnyValue", Taint("NoSchedule"), {{"key", "gpu"}, {"operator", "Exists"}}, true},
        RuleCase{
            "OfAnotherKey", Taint("NoSchedule"), {{"key", "cpu"}, {"operator", "Exists"}}, false},
        RuleCase{"OfEverything", Taint("NoSchedule"), {{"operator", "Exists"}}, true},
        RuleCase{"OfItsEffect",
                 Taint("NoExecute"),
                 {{"key", "gpu"}, {"operator", "Exists"}, {"effect", "NoExecute"}},
                 true},
        RuleCase{"OfAnotherEffect",
                 Taint("NoExecute"),
                 {{"key", "gpu"}, {"operator", "Exists"}, {"effect", "NoSchedule"}},
                 false}),
    [](const auto& info) { return info.param.name; });

struct TermCase {
  std::string name;
  Json term;
  int fits;  // of 3 pods with a GPU each: node "a" has 2 and label size=20, node "b" 1 and size=3
};

class TermTable : public CapacityTest, public testing::WithParamInterface<TermCase> {};

TEST_P(TermTable, SaysWhichNodesMatch) {
  capacity_.SetNode(
      Node("a", {{"nvidia.com/gpu", "2"}}, {{"metadata", {{"labels", {{"size", "20"}}}}}}));
  capacity_.SetNode(
      Node("b", {{"nvidia.com/gpu", "1"}}, {{"metadata", {{"labels", {{"size", "3"}}}}}}));
  const Json affinity = {{"nodeAffinity",
                          {{"requiredDuringSchedulingIgnoredDuringExecution",
                            {{"nodeSelectorTerms", Json::array({GetParam().term})}}}}}};
  EXPECT_EQ(Fit(3, kOneGpu, {{"affinity", affinity}}), GetParam().fits) << why_;
}

Json On(const char* list, Json requirement) { return {{list, Json::array({requirement})}}; }

INSTANTIATE_TEST_SUITE_P(
    NodeRules, TermTable,
    testing::Values(
        TermCase{"WithoutRequirements", Json::object(), 0},
        TermCase{"Greater",
                 On("matchExpressions", {{"key", "size"}, {"operator", "Gt"}, {"values", {"5"}}}),
                 2},
        TermCase{"Less",
                 On("matchExpressions", {{"key", "size"}, {"operator", "Lt"}, {"values", {"5"}}}),
                 1},
        TermCase{
            "NotInWithoutTheLabel",
            On("matchExpressions", {{"key", "none"}, {"operator", "NotIn"}, {"values", {"x"}}}), 3},
        TermCase{
            "ByName",
            On("matchFields", {{"key", "metadata.name"}, {"operator", "In"}, {"values", {"b"}}}),
            1},
        TermCase{
            "AllOfIt",
            {{"matchFields",
              Json::array({{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"b"}}}})},
             {"matchExpressions", Json::array({{{"key", "none"}, {"operator", "Exists"}}})}},
            0}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringmaster::scheduler
