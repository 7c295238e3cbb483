#include "operator/api/object_key.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::api {
namespace {

TEST(ObjectKey, IsWrittenAndReadAlike) {
  const nlohmann::json pod = {{"metadata", {{"namespace", "team"}, {"name", "job-0"}}}};
  EXPECT_EQ(KeyOf(pod), "team/job-0");
  EXPECT_EQ(ParseKey(KeyOf(pod)).ns, "team");
  EXPECT_EQ(ParseKey(KeyOf(pod)).name, "job-0");
  EXPECT_EQ(KeyOf(nlohmann::json::object()), "/");
  EXPECT_EQ(ParseKey("team").ns, "team");
  EXPECT_EQ(ParseKey("team").name, "");
}

}  // namespace
}  // namespace ringmaster::api
