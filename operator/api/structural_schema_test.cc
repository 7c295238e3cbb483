#include "operator/api/structural_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/structure.h"

namespace ringmaster::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const Json& Schema() {
  static const Json kSchema = Json::parse(R"({
    "type": "object",
    "required": ["size"],
    "properties": {
      "size": {"type": "integer", "minimum": 1, "maximum": 3},
      "name": {"type": "string", "minLength": 1, "maxLength": 4, "pattern": "^[a-z]*$"},
      "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
      "maybe": {"type": "string", "nullable": true},
      "when": {"type": "string", "format": "date-time"},
      "amount": {"x-kubernetes-int-or-string": true},
      "tags": {"type": "array", "minItems": 1, "maxItems": 2, "x-kubernetes-list-type": "set",
               "items": {"type": "string"}},
      "ports": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "properties": {
                  "port": {"type": "integer"},
                  "protocol": {"type": "string", "default": "TCP"}}}},
      "labels": {"type": "object", "maxProperties": 1,
                 "additionalProperties": {"type": "string"}},
      "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
      "template": {"type": "object", "x-kubernetes-embedded-resource": true}}})");
  return kSchema;
}

std::vector<std::pair<Rule, std::string>> Broken(Json object) {
  if (!object.contains("size")) object["size"] = 1;
  std::vector<std::pair<Rule, std::string>> broken;
  for (const Violation& violation : FindViolations(Schema(), object, "spec")) {
    broken.emplace_back(violation.rule, violation.path);
  }
  return broken;
}

TEST(StructuralSchemaTest, WhatFitsBreaksNothing) {
  EXPECT_THAT(Broken({{"size", 3.0},
                      {"name", "öä"},
                      {"mode", nullptr},
                      {"maybe", nullptr},
                      {"when", "2026-01-31T12:00:00Z"},
                      {"amount", "500m"},
                      {"labels", {{"k", "v"}}},
                      {"free", {{"anything", 1}}}}),
              ElementsAre(Pair(Rule::kPattern, "spec.name")));
  EXPECT_THAT(Broken({{"name", "abcd"}, {"amount", 2}, {"tags", {"x", "y"}}}), IsEmpty());
}

TEST(StructuralSchemaTest, EachRuleNamesTheFieldThatBreaksIt) {
  const std::vector<std::tuple<Json, Rule, std::string>> cases = {
      {{{"size", "1"}}, Rule::kType, "spec.size"},
      {{{"size", 1.5}}, Rule::kType, "spec.size"},
      {{{"amount", 1.5}}, Rule::kType, "spec.amount"},
      {{{"size", 0}}, Rule::kRange, "spec.size"},
      {{{"size", 18446744073709551615u}}, Rule::kRange, "spec.size"},
      {{{"size", nullptr}}, Rule::kRequired, "spec.size"},
      {{{"name", ""}}, Rule::kMinLength, "spec.name"},
      {{{"name", "abcde"}}, Rule::kMaxLength, "spec.name"},
      {{{"mode", "c"}}, Rule::kEnum, "spec.mode"},
      {{{"when", "today"}}, Rule::kTime, "spec.when"},
      {{{"tags", Json::array()}}, Rule::kMinItems, "spec.tags"},
      {{{"tags", {1, 2, 3}}}, Rule::kMaxItems, "spec.tags"},
      {{{"tags", {"x", "x"}}}, Rule::kDuplicate, "spec.tags[1]"},
      {{{"tags", {"x", nullptr}}}, Rule::kType, "spec.tags[1]"},
      {{{"ports", {{{"port", 1}}, {{"port", 1}, {"protocol", "TCP"}}}}},
       Rule::kDuplicate,
       "spec.ports[1]"},
      {{{"labels", {{"a", ""}, {"b", ""}}}}, Rule::kMaxProperties, "spec.labels"},
      {{{"labels", {{"a", 1}}}}, Rule::kType, "spec.labels.a"},
      {{{"nmae", "x"}}, Rule::kUnknown, "spec.nmae"},
  };
  for (const auto& [object, rule, path] : cases) {
    EXPECT_THAT(Broken(object), ElementsAre(Pair(rule, path))) << object;
  }
}

TEST(StructuralSchemaTest, TheParserHasWordsForEachRule) {
  FieldErrors errors;
  CheckStructure(Schema(), {{"size", 9}, {"nmae", "x"}}, "spec", &errors);
  EXPECT_EQ(ToString(errors),
            "spec.nmae: unknown field; did you mean \"name\"?\n"
            "spec.size: 9 is out of range: must be from 1 to 3");
}

TEST(StructuralSchemaTest, UnknownFieldsArePruned) {
  Json object = Json::parse(R"({
    "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "labels": {"a": "b"}, "odd": 1},
    "size": 1, "more": 1, "free": {"kept": 1}, "labels": {"kept": "1"},
    "ports": [{"port": 1, "odd": 2}],
    "template": {"kind": "K", "metadata": {"odd": 1}, "odd": 2}})");
  EXPECT_THAT(PruneUnknown(Schema(), object), ElementsAre("metadata.odd", "more", "ports[0].odd",
                                                          "template.metadata.odd", "template.odd"));
  EXPECT_EQ(object, Json::parse(R"({
    "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "labels": {"a": "b"}},
    "size": 1, "free": {"kept": 1}, "labels": {"kept": "1"}, "ports": [{"port": 1}],
    "template": {"kind": "K", "metadata": {}}})"));
}

TEST(StructuralSchemaTest, DefaultsTakeThePlaceOfNulls) {
  Json object = Json::parse(R"({"mode": null, "name": null, "maybe": null, "ports": [{}, null],
                                "free": {"kept": null}})");
  SetDefaults(Schema(), object);
  EXPECT_EQ(object, Json::parse(R"({"mode": "a", "maybe": null,
                                    "ports": [{"protocol": "TCP"}, null],
                                    "free": {"kept": null}})"));
}

}  // namespace
}  // namespace ringmaster::api
