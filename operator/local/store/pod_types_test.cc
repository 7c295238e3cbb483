#include "operator/local/store/pod_types.h"

#include <gtest/gtest.h>

#include <vector>

#include "operator/kube/resources.h"
#include "operator/local/store/store.h"

namespace ringmaster::local {
namespace {

Json Pod() {
  return {{"metadata", {{"name", "p"}}},
          {"spec",
           {{"containers", {{{"name", "main"}, {"image", "any"}, {"command", {"true"}}}}},
            {"initContainers", {{{"name", "first"}, {"image", "any"}}}}}}};
}

TEST(PodTypes, AFieldOfAnotherTypeIsNamedWithItsValueAndWhatIsAllowed) {
  struct Case {
    const char* pointer;
    Json value;
    const char* message;
  };
  for (const auto& [pointer, value, message] : std::vector<Case>{
           {"/spec/containers/0/readinessProbe",
            {{"timeoutSeconds", "5"}},
            "spec.containers[0].readinessProbe.timeoutSeconds: \"5\" is not a whole number of 32 "
            "bits"},
           {"/spec/containers/0/ports", "x", "spec.containers[0].ports: \"x\" is not a list"},
           {"/spec/containers/0/name", 5, "spec.containers[0].name: 5 is not a string"},
           {"/spec/containers/0/envFrom",
            {{{"secretRef", {{"name", "s"}, {"optional", "true"}}}}},
            "spec.containers[0].envFrom[0].secretRef.optional: \"true\" is not true or false"},
           {"/spec/containers/0/resources",
            {{"limits", "much"}},
            "spec.containers[0].resources.limits: \"much\" is not an object"},
           {"/spec/initContainers/0/restartPolicy", 5,
            "spec.initContainers[0].restartPolicy: 5 is not a string"},
           {"/spec/volumes",
            {{{"name", "v"}, {"configMap", {{"name", "c"}, {"optional", "true"}}}}},
            "spec.volumes[0].configMap.optional: \"true\" is not true or false"},
           {"/spec/containers/0", Json(), "spec.containers[0]: null is not an object"}}) {
    Json pod = Pod();
    pod[Json::json_pointer(pointer)] = value;
    EXPECT_EQ(WrongTypeInPod(pod), message);
    Store store({});
    const auto made = store.Create(kube::Pods(), "default", pod);
    ASSERT_FALSE(made.has_value()) << message;
    EXPECT_EQ(made.error()["code"], 400) << made.error().dump();
    EXPECT_NE(made.error()["message"].get<std::string>().find(message), std::string::npos)
        << made.error().dump();
  }
  EXPECT_EQ(WrongTypeInPod(Pod()), "");
}

TEST(PodTypes, AStatusOfAnotherTypeIsRefused) {
  Store store({});
  Json pod = store.Create(kube::Pods(), "default", Pod()).value();
  pod["status"]["containerStatuses"] = {{{"name", "main"}, {"ready", "yes"}}};
  const auto written = store.Update(kube::Pods(), "default", "p", pod, "status");
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error()["code"], 400);
  EXPECT_NE(written.error()["message"].get<std::string>().find(
                "status.containerStatuses[0].ready: \"yes\" is not true or false"),
            std::string::npos);
}

TEST(PodTypes, AFieldThatIsNullIsNotThere) {
  Store store({});
  Json pod = Pod();
  pod["spec"]["restartPolicy"] = nullptr;
  pod["spec"]["containers"][0]["ports"] = nullptr;
  const auto made = store.Create(kube::Pods(), "default", pod);
  ASSERT_TRUE(made.has_value()) << made.error().dump();
  EXPECT_EQ((*made)["spec"]["restartPolicy"], "Always");
  EXPECT_FALSE((*made)["spec"]["containers"][0].contains("ports"));
}

TEST(PodTypes, KeysOfFilesThatLeadOutOfTheirFolderAreInvalid) {
  Store store({});
  for (const kube::Resource& resource : {kube::ConfigMaps(), kube::Secrets()}) {
    for (const char* key : {"../../x", "..", ".", "..x", "a/b", ""}) {
      const auto made = store.Create(resource, "default",
                                     {{"metadata", {{"name", "a"}}}, {"data", {{key, "eA=="}}}});
      ASSERT_FALSE(made.has_value()) << key;
      EXPECT_EQ(made.error()["code"], 422) << key;
      EXPECT_NE(made.error()["message"].get<std::string>().find(std::string("data[") + key + "]"),
                std::string::npos);
    }
    EXPECT_TRUE(store.Create(resource, "default",
                             {{"metadata", {{"name", "a"}}}, {"data", {{".a_B-c.1", "eA=="}}}}));
    Json changed = store.Get(resource, "default", "a").value();
    changed["data"]["../x"] = "eA==";
    EXPECT_FALSE(store.Update(resource, "default", "a", changed, ""));
  }
}

TEST(PodTypes, DataThatIsNoMapOfStringsIsRefused) {
  Store store({});
  for (const Json& data : std::vector<Json>{"x", {{"a", 1}}, Json::array({"a"})}) {
    const auto made = store.Create(kube::ConfigMaps(), "default",
                                   {{"metadata", {{"name", "a"}}}, {"data", data}});
    ASSERT_FALSE(made.has_value()) << data;
    EXPECT_EQ(made.error()["code"], 400) << data;
  }
}

}  // namespace
}  // namespace ringmaster::local
