#include "operator/controllers/pod_annotations.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "operator/controllers/pod_facts.h"

namespace ringmaster::controllers {
namespace {

using Json = nlohmann::json;

TEST(PodAnnotationsTest, WhatIsWrittenOfAnnouncedEndsIsReadAgain) {
  Json pod = Json::parse(R"({"metadata": {"annotations": {"team": "a"}}})");
  WriteAnnounced(pod, {});
  EXPECT_EQ(pod["metadata"]["annotations"].size(), 1u);
  const std::map<std::string, std::string> announced = {{"gpu-a", "NodeCordoned"}};
  WriteAnnounced(pod, announced);
  EXPECT_EQ(pod["metadata"]["annotations"]["team"], "a");
  EXPECT_EQ(ReadPod(pod).announced, announced);
  DropOwnAnnotations(pod);
  EXPECT_TRUE(ReadPod(pod).announced.empty());
}

TEST(PodAnnotationsTest, APodSaysWhatItWasMadeFrom) {
  Json pod = {{"metadata", {{"name", "a"}}}};
  EXPECT_EQ(ReadPod(pod).made_from, "");
  EXPECT_EQ(ReadPod(pod).made_at, 0);
  WriteMadeFrom(pod, "digest", 7);
  EXPECT_EQ(ReadPod(pod).made_from, "digest");
  EXPECT_EQ(ReadPod(pod).made_at, 7);
  DropOwnAnnotations(pod);
  EXPECT_EQ(ReadPod(pod).made_from, "");
  EXPECT_EQ(ReadPod(pod).made_at, 0);
}

TEST(PodAnnotationsTest, NonsenseAnnouncesNothing) {
  for (const char* text : {"", "{", "3", "[\"gpu-a\"]", "{\"gpu-a\": 3}"}) {
    const Json pod = {{"metadata", {{"annotations", {{api::kAnnouncedAnnotation, text}}}}}};
    EXPECT_TRUE(ReadPod(pod).announced.empty()) << text;
  }
}

TEST(PodAnnotationsTest, AShieldIsWhatTheOperatorHasWrittenAndNobodyHasChanged) {
  constexpr char kSafeToEvict[] = "cluster-autoscaler.kubernetes.io/safe-to-evict";
  constexpr char kDoNotDisrupt[] = "karpenter.sh/do-not-disrupt";
  Json pod = {{"metadata", {{"name", "a"}}}};
  WriteShields(pod);
  Json& annotations = pod["metadata"]["annotations"];
  EXPECT_EQ(annotations[kSafeToEvict], "false");
  EXPECT_EQ(annotations[kDoNotDisrupt], "true");
  EXPECT_EQ(ReadPod(pod).shields, (std::vector<std::string>{kSafeToEvict, kDoNotDisrupt}));
  annotations[kSafeToEvict] = "true";  // a user has changed it
  EXPECT_EQ(ReadPod(pod).shields, (std::vector<std::string>{kDoNotDisrupt}));
  // The template's own values are kept and never removed.
  for (const char* value : {"true", "false"}) {
    Json own = {{"metadata", {{"annotations", {{kDoNotDisrupt, value}}}}}};
    WriteShields(own);
    EXPECT_EQ(own["metadata"]["annotations"][kDoNotDisrupt], value);
    EXPECT_EQ(ReadPod(own).shields, (std::vector<std::string>{kSafeToEvict}));
  }
  DropOwnAnnotations(pod);
  EXPECT_TRUE(ReadPod(pod).shields.empty());
}

TEST(PodAnnotationsTest, ATemplateCannotSpeakForTheOperator) {
  Json pod = Json::parse(R"({"metadata": {"annotations": {"team": "a",
      "ringmaster.dev/local-working-dir": "/here"}}})");
  for (const char* mark :
       {"drain", "drain-since", "http", "boot", "proven-dead", "held", "warned", "warned-since"}) {
    pod["metadata"]["annotations"][std::string("ringmaster.dev/") + mark] = "so it says";
  }
  DropOwnAnnotations(pod);
  EXPECT_EQ(pod["metadata"]["annotations"],
            Json({{"team", "a"}, {"ringmaster.dev/local-working-dir", "/here"}}));
  Json plain = Json::parse(R"({"metadata": {}})");
  DropOwnAnnotations(plain);
  EXPECT_EQ(plain, Json::parse(R"({"metadata": {}})"));
}

}  // namespace
}  // namespace ringmaster::controllers
