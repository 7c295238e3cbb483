#include "operator/kube/parse_object.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::kube {
namespace {

using Json = nlohmann::json;

TEST(ParseObjectTest, BuildsWhatTheLibraryBuilds) {
  for (const char* text :
       {R"({"a": [1, -2, 3.5, true, null, "x\u00e9", {}, [], {"b": {"c": [[1]]}}], "": {"": ""}})",
        "[]", "7", "\"text\"", "null", "[[[{\"a\": 1}]]]", R"({"a": 1, "a": 2})", " { } \n",
        "[0, -0, -0.0, 1e3, 1.0, 0.1, 1e-7, 5e-324, 1.7976931348623157e308, 123456789012345678901]",
        "[2147483648, 9223372036854775807, 9223372036854775808, 18446744073709551615]",
        "[-2147483649, -9223372036854775808, -9223372036854775809]",
        R"(["\ud83d\ude00", "\u0000x", "\/\b\f\n\r\t\"\\", "é", "😀", "\u20ac"])",
        "\xef\xbb\xbf{}"}) {
    EXPECT_EQ(ParseObjectOrDiscard(text), Json::parse(text)) << text;
  }
}

TEST(ParseObjectTest, LeavesOutManagedFieldsOfObjectsListsAndEvents) {
  const std::string object =
      R"({"metadata": {"name": "p", "managedFields": [{"fieldsV1": {"f:spec": {"f:a": {}}}}, 1],
          "labels": {"managedFields": "mine"}}, "data": {"managedFields": "mine"}})";
  Json wanted = Json::parse(object);
  wanted["metadata"].erase("managedFields");
  EXPECT_EQ(ParseObjectOrDiscard(object), wanted);
  EXPECT_EQ(ParseObjectOrDiscard(R"({"items": [)" + object + "," + object + "]}"),
            Json({{"items", {wanted, wanted}}}));
  EXPECT_EQ(ParseObjectOrDiscard(R"({"type": "ADDED", "object": )" + object + "}"),
            Json({{"type", "ADDED"}, {"object", wanted}}));
}

TEST(ParseObjectTest, LeavesOutWhatTheCallerDoesNotRead) {
  static constexpr UnreadField kFields[] = {{"spec", "volumes"}, {"containers", "env"}};
  const char* pod = R"({
      "metadata": {"labels": {"volumes": "mine", "containers": "mine", "env": "mine"}},
      "spec": {"volumes": [{"name": "v"}, {"emptyDir": {}}], "containers":
          [{"name": "a", "env": [{"name": "A"}], "image": "i"}, {"env": null, "name": "b"}]}})";
  EXPECT_EQ(ParseObjectOrDiscard(pod, {}, kFields), Json::parse(R"({
      "metadata": {"labels": {"volumes": "mine", "containers": "mine", "env": "mine"}},
      "spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b"}]}})"));
  EXPECT_EQ(ParseObjectOrDiscard(pod), Json::parse(pod));
}

TEST(ParseObjectTest, WhatIsNoJsonOrTooMuchIsDiscarded) {
  for (const char* text : {"",
                           "{",
                           "[1,",
                           "{\"a\" 1}",
                           "nul",
                           R"({"metadata": {"managedFields": [})",
                           "[1,]",
                           "{,}",
                           R"({"a": 1,})",
                           "[01]",
                           "[+1]",
                           "[.5]",
                           "[1.]",
                           "[NaN]",
                           "[Infinity]",
                           "[1e999]",
                           "[1] 2",
                           "[1] x",
                           "[\"\xff\"]",
                           "[\"\xc0\x80\"]",
                           "[\"\xed\xa0\x80\"]",
                           R"(["\ud800"])",
                           R"(["\udc00"])",
                           R"(["\x"])",
                           "[\"a\nb\"]",
                           "['a']",
                           "{a: 1}",
                           "// c\n[]",
                           "[1 2]"}) {
    EXPECT_TRUE(Json::parse(text, nullptr, false).is_discarded()) << text;
    EXPECT_TRUE(ParseObjectOrDiscard(text).is_discarded()) << text;
  }
  EXPECT_TRUE(ParseObjectOrDiscard("[[[]]]", {.depth = 2}).is_discarded());
  EXPECT_FALSE(ParseObjectOrDiscard("[[[]]]", {.depth = 3}).is_discarded());
  const char* skipped = R"({"metadata": {"managedFields": [[]]}})";
  EXPECT_TRUE(ParseObjectOrDiscard(skipped, {.depth = 3}).is_discarded());
  EXPECT_FALSE(ParseObjectOrDiscard(skipped, {.depth = 4}).is_discarded());
  EXPECT_TRUE(ParseObjectOrDiscard("[1, 2]", {.bytes = 3}).is_discarded());
}

}  // namespace
}  // namespace ringmaster::kube
