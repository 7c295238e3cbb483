#include "operator/cli/local_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

Json Job(const Json& pod_spec) {
  return {{"spec", {{"worker", {{"template", {{"spec", pod_spec}}}}}}}};
}

TEST(LocalMode, AClaimBecomesTheFolderThatWasGiven) {
  const support::TempDir dir;
  const auto folders = ParseClaimFolders({"data=" + dir.path().string(), "state=."}, dir.path());
  ASSERT_TRUE(folders.has_value()) << folders.error().message;
  std::vector<Json> jobs = {
      Job({{"volumes",
            {{{"name", "d"}, {"persistentVolumeClaim", {{"claimName", "data"}}}},
             {{"name", "t"}, {"emptyDir", Json::object()}}}}}),
      Job(Json::object()),
      Job({{"volumes", {{{"name", "s"}, {"persistentVolumeClaim", {{"claimName", "state"}}}}}}})};
  ASSERT_TRUE(GiveFolders(*folders, &jobs).has_value());
  const Json volumes = jobs[0]["spec"]["worker"]["template"]["spec"]["volumes"];
  EXPECT_EQ(
      volumes[0],
      Json({{"name", "d"}, {"hostPath", {{"path", dir.path().string()}, {"type", "Directory"}}}}));
  EXPECT_EQ(volumes[1], Json({{"name", "t"}, {"emptyDir", Json::object()}}));
}

TEST(LocalMode, AVolumeThatIsWronglyNamedIsUsage) {
  const support::TempDir dir;
  for (const char* word : {"data", "=x", "data=", "data=nowhere"}) {
    const auto folders = ParseClaimFolders({word}, dir.path());
    ASSERT_FALSE(folders.has_value()) << word;
    EXPECT_EQ(folders.error().code, ExitCode::kUsage);
    EXPECT_THAT(folders.error().message, HasSubstr(std::string("--volume ") + word));
  }
  std::vector<Json> jobs = {
      Job({{"volumes", {{{"name", "s"}, {"persistentVolumeClaim", {{"claimName", "state"}}}}}}})};
  const auto given = GiveFolders({{"data", "/x"}}, &jobs);
  ASSERT_FALSE(given.has_value());
  EXPECT_THAT(given.error().message, HasSubstr("there are: state"));
}

TEST(LocalMode, WhatHasNoEffectHereIsListed) {
  const Json probe = {{"exec", {{"command", {"true"}}}}};
  EXPECT_THAT(IgnoredFields(Job({{"securityContext", {{"runAsUser", 1000}}},
                                 {"containers",
                                  {{{"name", "a"}, {"securityContext", Json::object()}},
                                   {{"name", "b"},
                                    {"livenessProbe", probe},
                                    {"readinessProbe", probe},
                                    {"lifecycle", {{"preStop", probe}}}}}}})),
              ElementsAre("spec.worker.template.spec.securityContext",
                          "spec.worker.template.spec.containers[1].lifecycle",
                          "spec.worker.template.spec.containers[1].livenessProbe"));
}

}  // namespace
}  // namespace ringmaster::cli
