#include "operator/app/rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::app {
namespace {

using kube::Json;

// Allows everything except `denied`, in the format of an API server.
class ReviewingApi : public runtime::ScriptedApi {
 public:
  std::string denied;
  bool knows = true;
  int asked = 0;

  kube::Result<Json> Create(const kube::Resource& resource, const std::string&,
                            const Json& object) override {
    ++asked;
    if (!knows || resource.plural != "selfsubjectaccessreviews") {
      return tl::unexpected(kube::Error{.code = kube::ErrorCode::kNotFound, .http_status = 404});
    }
    const Json& of = object["spec"]["resourceAttributes"];
    const std::string right = of["verb"].get<std::string>() + " " +
                              of["resource"].get<std::string>() + "/" +
                              of["subresource"].get<std::string>();
    Json answer = object;
    answer["status"] = {{"allowed", right != denied}};
    return answer;
  }
};

TEST(Rights, AMissingOneIsNamedWithVerbResourceAndPlace) {
  ReviewingApi api;
  api.denied = "update horovodjobs/status";
  const auto missing = MissingRights(&api, WantedRights({}), {});
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].ToString(), "update horovodjobs.ringmaster.dev/status in all namespaces");
  api.denied = "patch pods/";
  const auto both = MissingRights(
      &api,
      WantedRights({.watch_namespaces = {"team"}, .lease_namespace = "ops", .whole_cluster = true}),
      {});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].ToString(), "patch pods in namespace team");
  EXPECT_EQ(both[1].ToString(), "patch pods in namespace ops");
}

TEST(Rights, AreAskedForInEachNamespaceThatIsWatched) {
  ReviewingApi api;
  api.denied = "update horovodjobs/status";
  const auto missing = MissingRights(&api, WantedRights({.watch_namespaces = {"a", "b"}}), {});
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0].ns, "a");
  EXPECT_EQ(missing[1].ns, "b");
}

TEST(Rights, WhatOnlyASettingNeedsIsAskedForWithIt) {
  ReviewingApi api;
  api.denied = "get nodes/";
  EXPECT_TRUE(MissingRights(&api, WantedRights({.whole_cluster = true}), {}).empty());
  EXPECT_EQ(MissingRights(&api, WantedRights({.trust_node_deletion = true}), {}).size(), 1u);
  api.denied = "get priorityclasses/";
  EXPECT_TRUE(MissingRights(&api, WantedRights({}), {}).empty());
  EXPECT_EQ(MissingRights(&api, WantedRights({.whole_cluster = true, .kueue = true}), {}).size(),
            1u);
  api.denied = "create podtemplates/";
  EXPECT_TRUE(MissingRights(&api, WantedRights({}), {}).empty());
  EXPECT_EQ(MissingRights(&api, WantedRights({.provisioning_requests = true}), {}).size(), 1u);
  api.denied = "create tokenreviews/";
  EXPECT_TRUE(MissingRights(&api, WantedRights({}), {}).empty());
  EXPECT_EQ(MissingRights(&api, WantedRights({.reviews = true}), {}).size(), 1u);
  api.denied = "get pods/log";
  EXPECT_TRUE(MissingRights(&api, WantedRights({}), {}).empty());
  EXPECT_EQ(MissingRights(&api, WantedRights({.page = true}), {}).size(), 1u);
  api.denied = "get secrets/";
  const auto missing = MissingRights(
      &api, WantedRights({.watch_namespaces = {"team"}, .authority_namespace = "ops"}), {});
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[1].ToString(), "get secrets in namespace ops");
}

TEST(Rights, OutsideAClusterNothingIsWantedOfALeaseAndNobodyIsAskedTwice) {
  for (const Right& right : WantedRights({})) EXPECT_NE(right.resource, "leases");
  ReviewingApi api;
  api.knows = false;
  EXPECT_TRUE(MissingRights(&api, WantedRights({.lease_namespace = "ops"}), {}).empty());
  EXPECT_EQ(api.asked, 1) << "an API server that knows no reviews is asked once";
}

TEST(Rights, NodesAreReadOnlyByWhoLooksAtTheWholeCluster) {
  const auto whole = WantedRights({.watch_namespaces = {"team"}, .whole_cluster = true});
  const auto nodes = std::count_if(whole.begin(), whole.end(), [](const Right& right) {
    return right.resource == "nodes" && right.ns.empty();
  });
  EXPECT_GE(nodes, 2) << "list and watch";
}

}  // namespace
}  // namespace ringmaster::app
