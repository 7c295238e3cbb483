#include "operator/provisioning/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/labels.h"
#include "operator/api/testing/job_object.h"

namespace ringmaster::provisioning {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

api::HorovodJob Job(const Json& annotations = Json::object()) {
  Json object = api::testing::JobObject("digits", 4, 3);
  object["metadata"]["uid"] = "0123456789";
  object["spec"]["worker"]["template"]["metadata"]["annotations"] = annotations;
  const auto job = api::ParseHorovodJob(object);
  EXPECT_TRUE(job) << api::ToString(job.error());
  return *job;
}

Json Condition(const char* type, const char* status, const char* message) {
  return {{"type", type},
          {"status", status},
          {"reason", "Why"},
          {"message", message},
          {"lastTransitionTime", "2026-01-31T12:00:00Z"}};
}

TEST(RequestTest, SaysHowFarItIsByItsConditions) {
  struct Case {
    Json conditions;
    RequestStage stage;
    const char* why;
  };
  const Json accepted = Condition("Accepted", "True", "a");
  const Json provisioned = Condition("Provisioned", "True", "p");
  const Case cases[] = {
      {Json::array(), RequestStage::kAsked, ""},
      {{accepted}, RequestStage::kAccepted, "Why: a"},
      {{Condition("Accepted", "False", "not for us")}, RequestStage::kAsked, "Why: not for us"},
      {{accepted, Condition("Provisioned", "False", "not yet")},
       RequestStage::kAccepted,
       "Why: not yet"},
      {{accepted, provisioned}, RequestStage::kProvisioned, "Why: p"},
      {{accepted, Condition("Failed", "False", "x"), provisioned},
       RequestStage::kProvisioned,
       "Why: p"},
      {{accepted, provisioned, Condition("BookingExpired", "True", "b")},
       RequestStage::kBookingExpired,
       "Why: b"},
      {{provisioned, Condition("CapacityRevoked", "True", "c")},
       RequestStage::kCapacityRevoked,
       "Why: c"},
      {{provisioned, Condition("Failed", "True", "f")}, RequestStage::kFailed, "Why: f"}};
  for (const Case& one : cases) {
    const RequestFacts facts = ReadRequest({{"status", {{"conditions", one.conditions}}}});
    EXPECT_EQ(facts.stage, one.stage) << one.conditions;
    EXPECT_EQ(facts.why, one.why) << one.conditions;
  }
}

TEST(RequestTest, IsReadLeniently) {
  for (const Json& strange :
       {Json(), Json(1), Json::array(), Json{{"spec", 1}, {"status", "x"}, {"metadata", {1}}},
        Json{{"status", {{"conditions", {1, "x", Json::object(), {{"type", 1}}}}}}},
        Json{{"spec", {{"podSets", {1, {{"count", "many"}}}}}}},
        Json{{"metadata", {{"annotations", {{api::kAttemptAnnotation, "99999999999999999999"}}}}}},
        Json{{"metadata", {{"annotations", {{api::kAttemptAnnotation, "-1"}}}}}}}) {
    const RequestFacts facts = ReadRequest(strange);
    EXPECT_EQ(facts.stage, RequestStage::kAsked) << strange;
    EXPECT_EQ(facts.attempt, 1) << strange;
    EXPECT_EQ(facts.count, 0) << strange;
  }
  const Json lengthy = {
      {"status", {{"conditions", {Condition("Failed", "True", std::string(9999, 'x').c_str())}}}}};
  EXPECT_LT(ReadRequest(lengthy).why.size(), 600u);
}

TEST(RequestTest, CountsThatFitInNoNumberMeanMorePodsThanAnyJobHas) {
  for (const char* counts : {"[2147483647, 2147483647]", "[5000000000]", "[999999, -7, 2]"}) {
    Json sets = Json::array();
    for (const Json& count : Json::parse(counts)) sets.push_back({{"count", count}});
    EXPECT_EQ(ReadRequest({{"spec", {{"podSets", sets}}}}).count, 1'000'000) << counts;
  }
}

TEST(RequestTest, AsksForThePodsByATemplateAndIsReadBack) {
  const api::HorovodJob job = Job();
  const Json pod = {
      {"metadata", {{"labels", {{"a", "b"}, {api::kReplicaIndexLabel, "0"}}}}},
      {"spec",
       {{"nodeSelector", {{"pool", "gpu"}}},
        {"volumes",
         {{{"name", "secret"}}, {{"name", "d"}, {"persistentVolumeClaim", {{"claimName", "c"}}}}}},
        {"containers",
         {{{"name", "worker"},
           {"image", "i"},
           {"command", {"secret"}},
           {"resources", {{"limits", {{"gpu", "1"}}}}}}}}}}};
  const Requests requests{.class_name = kBestEffortAtomic, .digest = "d"};
  const Objects made = BuildObjects(job, requests, {.count = 3, .attempt = 2, .domain = "r1"}, pod,
                                    "autoscaling.x-k8s.io/v1", 900);
  EXPECT_EQ(made.pod_template["metadata"]["name"], made.request["metadata"]["name"]);
  EXPECT_THAT(made.request["metadata"]["name"].get<std::string>(), HasSubstr("digits-01234567-"));
  for (const Json& object : {made.pod_template, made.request}) {
    EXPECT_EQ(object["metadata"]["ownerReferences"][0]["uid"], job.uid);
    EXPECT_EQ(object["metadata"]["labels"][api::kManagedByLabel], api::kManagedBy);
  }
  EXPECT_EQ(made.request["apiVersion"], "autoscaling.x-k8s.io/v1");
  EXPECT_EQ(
      made.request["spec"],
      Json({{"provisioningClassName", kBestEffortAtomic},
            {"parameters", {{"ValidUntilSeconds", "900"}}},
            {"podSets",
             {{{"podTemplateRef", {{"name", made.request["metadata"]["name"]}}}, {"count", 3}}}}}));
  const Json& spec = made.pod_template["template"]["spec"];
  EXPECT_EQ(spec["nodeSelector"]["pool"], "gpu");
  EXPECT_EQ(spec["containers"][0]["resources"]["limits"]["gpu"], "1");
  EXPECT_EQ(spec["volumes"].size(), 1u) << "that of a claim";
  EXPECT_EQ(made.pod_template["template"]["metadata"]["labels"], Json({{"a", "b"}}));
  EXPECT_EQ(made.pod_template.dump().find("secret"), std::string::npos);

  const RequestFacts facts = ReadRequest(made.request);
  EXPECT_EQ(facts.count, 3);
  EXPECT_EQ(facts.attempt, 2);
  EXPECT_EQ(facts.digest, "d");
  EXPECT_EQ(facts.domain, "r1");
  EXPECT_EQ(facts.class_name, kBestEffortAtomic);
}

TEST(RequestTest, WhatIsAskedForIsTheSameWhateverTheImagesAre) {
  const auto digest = [](const char* image, const char* gpus) {
    return DigestOf(TemplateOf({{"spec",
                                 {{"containers",
                                   {{{"name", "worker"},
                                     {"image", image},
                                     {"resources", {{"limits", {{"gpu", gpus}}}}}}}}}}}));
  };
  EXPECT_EQ(digest("a", "1"), digest("b", "1"));
  EXPECT_NE(digest("a", "1"), digest("a", "2"));
}

TEST(RequestTest, OnlyTheSameWishHasTheSameName) {
  const auto name = [](const api::HorovodJob& job, const Requests& requests, const Wanted& wanted) {
    return BuildObjects(job, requests, wanted, Json::object(), "v", 1).request["metadata"]["name"];
  };
  const api::HorovodJob job = Job();
  api::HorovodJob later = job;
  later.status.last_given_back_time = "2026-01-31T12:00:00Z";
  const Requests requests{.class_name = "c", .digest = "d"};
  EXPECT_EQ(name(job, requests, {.count = 3}), name(job, requests, {.count = 3}));
  EXPECT_NE(name(job, requests, {.count = 3}), name(job, requests, {.count = 2}));
  EXPECT_NE(name(job, requests, {.count = 3}), name(job, requests, {.count = 3, .attempt = 2}));
  EXPECT_NE(name(job, requests, {.count = 3}), name(later, requests, {.count = 3}));
  EXPECT_NE(name(job, requests, {.count = 3}), name(job, {.class_name = "e"}, {.count = 3}));
}

TEST(RequestTest, OfAnotherClassHasNoParameters) {
  const Json spec = BuildObjects(Job(), {.class_name = "check-capacity.autoscaling.x-k8s.io"},
                                 {.count = 1}, Json::object(), "v", 1)
                        .request["spec"];
  EXPECT_FALSE(spec.contains("parameters"));
}

TEST(ClassTest, TheTemplateMayNameOne) {
  EXPECT_EQ(ClassOf(Job(), "a.b"), "a.b");
  EXPECT_EQ(ClassOf(Job({{kClassAnnotation, "c.d"}}), "a.b"), "c.d");
  EXPECT_FALSE(BringsOwnRequest(Job()));
  EXPECT_TRUE(BringsOwnRequest(Job({{kConsumeAnnotation, "mine"}})));
}

TEST(ClassTest, AWrongOneIsSaidWithWhatIsAllowed) {
  for (const char* right : {"a", "a-b.c", kBestEffortAtomic, "1.2"}) {
    EXPECT_THAT(WrongClass(right), IsEmpty()) << right;
  }
  for (const std::string wrong : {"", "A", "a_b", ".a", "a.", "-a", "a-", "a..b", "a.-b", "a-.b",
                                  "a b", std::string(254, 'a').c_str()}) {
    EXPECT_THAT(WrongClass(wrong), HasSubstr("provisioning-class-name")) << wrong;
    EXPECT_THAT(WrongClass(wrong), HasSubstr("allowed are")) << wrong;
  }
}

TEST(ConsumeTest, NamesRequestAndClass) {
  Json pod = {{"metadata", {{"annotations", {{"a", "b"}}}}}};
  Consume({"r", "c", 1}, &pod);
  EXPECT_EQ(pod["metadata"]["annotations"],
            Json({{"a", "b"}, {kConsumeAnnotation, "r"}, {kClassAnnotation, "c"}}));
}

}  // namespace
}  // namespace ringmaster::provisioning
