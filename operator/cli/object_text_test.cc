#include "operator/cli/object_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::cli {
namespace {

TEST(ObjectTextTest, DocumentsOfYamlAreSeparated) {
  ObjectText yaml(OutputFormat::kYaml);
  EXPECT_EQ(yaml.Next({{"step", 1}}), "step: 1\n");
  EXPECT_EQ(yaml.Next({{"step", 2}}), "---\nstep: 2\n");
}

TEST(ObjectTextTest, ObjectsOfJsonFollowOneAnother) {
  ObjectText json(OutputFormat::kJson);
  EXPECT_EQ(json.Next({{"step", 1}}), "{\n  \"step\": 1\n}\n");
  EXPECT_EQ(json.Next({{"step", 2}}), "{\n  \"step\": 2\n}\n");
}

}  // namespace
}  // namespace ringmaster::cli
