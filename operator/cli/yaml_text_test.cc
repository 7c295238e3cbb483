#include "operator/cli/yaml_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

TEST(YamlTextTest, NestedValuesAreWrittenInBlockStyle) {
  Json value = {{"kind", "Pod"},
                {"list", {{{"a", 1}, {"b", {"x", "y"}}}, Json::array({1, 2}), "text"}},
                {"none", nullptr},
                {"empty", Json::object()}};
  EXPECT_EQ(ToYaml(value),
            "empty: {}\n"
            "kind: Pod\n"
            "list:\n"
            "  - a: 1\n"
            "    b:\n"
            "      - x\n"
            "      - \"y\"\n"
            "  -\n"
            "    - 1\n"
            "    - 2\n"
            "  - text\n"
            "none: null\n");
}

TEST(YamlTextTest, TextThatYamlWouldReadAsSomethingElseIsQuoted) {
  for (const char* word : {"yes", "No", "on", "null", "True", "1.5", "", "a: b", "- x", "#c", "~"})
    EXPECT_EQ(ToYaml(Json(word)), Json(word).dump() + "\n");
  EXPECT_EQ(ToYaml(Json("ringmaster.dev/v1")), "ringmaster.dev/v1\n");
}

}  // namespace
}  // namespace ringmaster::cli
