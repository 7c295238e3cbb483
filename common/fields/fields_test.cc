#include "common/fields/fields.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "common/fields/parse.h"

namespace ringmaster::fields {
namespace {

TEST(FieldsTest, WhatIsAbsentOrOfAnotherTypeCountsAsEmpty) {
  const Json values = {nullptr, true, 7, -7, 1.5, "text", Json::array({1}), {{"inner", 1}}};
  for (const Json& value : values) {
    const Json object = {{"name", value}};
    EXPECT_EQ(Text(object, "name"), value.is_string() ? "text" : "") << value;
    EXPECT_EQ(TextAt(object, "/name"), value.is_string() ? "text" : "") << value;
    EXPECT_EQ(Flag(object, "name"), value.is_boolean()) << value;
    EXPECT_EQ(List(object, "name").size(), value.is_array() ? 1u : 0u) << value;
    EXPECT_EQ(Integer(object, "name", 42) == 42, !value.is_number()) << value;
    EXPECT_TRUE(Object(object, "name").is_object()) << value;
    EXPECT_EQ(Object(object, "name").size(), value.is_object() ? 1u : 0u) << value;
    EXPECT_TRUE(At(object, "/name/missing").is_null()) << value;
    EXPECT_EQ(Text(value, "name"), "") << "nothing is read out of " << value;
    EXPECT_TRUE(List(value, "name").empty()) << value;
  }
}

TEST(FieldsTest, ANumberThatDoesNotFitIsAbsent) {
  const Json object = {{"large", std::numeric_limits<std::uint64_t>::max()},
                       {"huge", 1e300},
                       {"below", -3},
                       {"fraction", 2.75}};
  EXPECT_EQ(Integer(object, "large", 42), 42);
  EXPECT_EQ(Integer(object, "huge", 42), 42);
  EXPECT_EQ(Integer(object, "below"), -3);
  EXPECT_EQ(Integer(object, "fraction"), 2);
  EXPECT_EQ(Unsigned(object, "large"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(Unsigned(object, "below", 42), 0u);
  EXPECT_EQ(Unsigned(object, "missing", 42), 42u);
  EXPECT_EQ(Unsigned(object, "huge", 42), 42u);
  EXPECT_EQ(Number(object, "fraction"), 2.75);
}

TEST(FieldsTest, TextsLeavesOutWhatIsNoString) {
  const Json object = {{"names", {"a", 1, nullptr, "b"}}};
  EXPECT_EQ(Texts(object, "names"), (std::vector<std::string>{"a", "b"}));
}

TEST(FieldsTest, APointerReachesInside) {
  const Json object = {{"metadata", {{"name", "digits"}, {"generation", 3}}},
                       {"items", {{{"x", 1}}}}};
  EXPECT_EQ(TextAt(object, "/metadata/name"), "digits");
  EXPECT_EQ(IntegerAt(object, "/metadata/generation"), 3);
  EXPECT_EQ(ListAt(object, "/items").size(), 1u);
  EXPECT_TRUE(At(object, "/items/name").is_null()) << "an array has no field";
}

TEST(ParseTest, TheLimitsAreWhereTheyAreSaid) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(Parse(nested(64), "it").has_value());
  EXPECT_EQ(Parse(nested(65), "it").error(), "it: nested deeper than 64 levels");
  EXPECT_TRUE(ParseOrDiscard(nested(65)).is_discarded());
  EXPECT_TRUE(Parse("[10]", "it", {.bytes = 4}).has_value());
  EXPECT_EQ(Parse("[100]", "it", {.bytes = 4}).error(), "it: 5 bytes, at most 4 are allowed");
  EXPECT_EQ(Parse("{", "it").error(), "it: not JSON: {");
}

TEST(ParseTest, BracketsInStringsDoNotCount) {
  const ParseLimits flat{.depth = 1};
  for (const char* text : {R"(["[[[["])", R"(["\"[[["])", R"(["\\"])", R"({"[":"{"})"}) {
    EXPECT_TRUE(Parse(text, "it", flat).has_value()) << text;
  }
  for (const char* text : {R"(["\\",[1]])", R"(["a",[]])", R"([{}])", R"(["\)", R"(["a)"}) {
    EXPECT_FALSE(Parse(text, "it", flat).has_value()) << text;
  }
}

}  // namespace
}  // namespace ringmaster::fields
