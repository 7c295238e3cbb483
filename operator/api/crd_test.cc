// The CRD and the C++ types define one API twice, for the API server and for us. This test asks the
// parser, field by field, whether it agrees with crds/.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "operator/api/horovod_job.h"
#include "operator/api/pod_template.h"
#include "operator/kube/yaml.h"
#include "operator/local/store/schema.h"

namespace ringmaster::api {
namespace {

using testing::HasSubstr;
using Pointer = Json::json_pointer;

constexpr char kNobodysField[] = "zzzzzzzzzzzz";

// Optional fields without a value by default; all other optional fields need a default.
const std::set<std::string> kNoDefault = {
    "spec.elasticPolicy.maxReplicas",
    "spec.runPolicy.ttlSecondsAfterFinished",
    "spec.runPolicy.activeDeadlineSeconds",
    "spec.failurePolicy.rules[0].onExitCodes",
    "spec.failurePolicy.rules[0].onReasons",
    "spec.runPolicy.schedulingPolicy.topology.required",
    "spec.runPolicy.schedulingPolicy.topology.preferred",
};

std::string ReadCrd() {
  std::ifstream file(RM_CRD_FILE);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// One property of the schema and where it stands in a manifest.
struct Field {
  std::string path;  // as in errors: spec.worker.replicas
  Pointer at;        // /spec/worker/replicas
  Json schema;
  bool required = false;
  bool in_list = false;  // below an element of a list, where there are no defaults
  std::string type() const { return schema.value("type", ""); }
};

// All properties below `parent`; lists have one element, [0]. The fields of a pod template are
// omitted, because the parser uses the schema for them (tests/crd tries them all).
void Collect(const Field& parent, std::vector<Field>* fields) {
  const Json required = parent.schema.value("required", Json::array());
  const Json properties = parent.schema.value("properties", Json::object());
  for (const auto& [name, schema] : properties.items()) {
    Field field{parent.path.empty() ? name : parent.path + "." + name, parent.at / name, schema,
                std::find(required.begin(), required.end(), name) != required.end(),
                parent.in_list};
    fields->push_back(field);
    if (field.path == "spec.worker.template") continue;
    if (field.type() == "object") Collect(field, fields);
    if (field.type() != "array") continue;
    Field item{field.path + "[0]", field.at / 0, schema.at("items"), true, true};
    fields->push_back(item);
    Collect(item, fields);
  }
}

// A value that the schema allows, with every field that the schema has.
Json Sample(const Json& schema) {
  if (schema.value("x-kubernetes-int-or-string", false)) return "1";
  const std::string type = schema.at("type");
  if (type == "integer") return schema.value("minimum", 0);
  if (type == "boolean") return false;
  if (type == "string") return schema.contains("enum") ? schema["enum"][0] : Json("x");
  if (type == "array") return Json::array({Sample(schema.at("items"))});
  Json object = Json::object();
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, property] : properties.items()) {
    object[name] = Sample(property);
  }
  if (schema.contains("additionalProperties")) object["x"] = Sample(schema["additionalProperties"]);
  return object;
}

FieldErrors ErrorsOf(const Json& manifest) {
  auto job = ParseHorovodJob(manifest);
  return job ? FieldErrors{} : job.error();
}

// The parser's error about exactly this field; empty if there is none.
std::string ErrorAt(const Json& manifest, const std::string& path) {
  for (const FieldError& error : ErrorsOf(manifest)) {
    if (error.path == path) return error.message;
  }
  return "";
}

std::set<std::string> Words(const std::string& message, const std::string& after) {
  std::set<std::string> words;
  const std::size_t begin = message.find(after);
  if (begin == std::string::npos) return words;
  std::istringstream list(message.substr(begin + after.size()));
  for (std::string word; std::getline(list, word, ',');)
    words.insert(word.substr(word.find_first_not_of(' ')));
  return words;
}

class CrdTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto documents = kube::YamlToJson(ReadCrd());
    ASSERT_TRUE(documents) << documents.error();
    schema_ = documents->at(0).at("/spec/versions/0/schema/openAPIV3Schema"_json_pointer);
    Collect({"spec", Pointer("/spec"), schema_["properties"]["spec"]}, &fields_);
    ASSERT_GT(fields_.size(), 35u) << "is this the right schema?";
    full_ = {{"apiVersion", kApiVersion},
             {"kind", kKind},
             {"metadata", {{"name", "digits"}}},
             {"spec", Sample(schema_["properties"]["spec"])}};
    // Some fields are refused in the container of the workers, so that is another one.
    full_[Pointer("/spec/worker/template/spec/containers")].push_back(
        {{"name", kWorkerContainer}, {"image", "x"}, {"command", {"train"}}});
    // Only one of the two may be set.
    full_[Pointer("/spec/runPolicy/schedulingPolicy/topology")].erase("preferred");
    smallest_ = full_;
    smallest_["spec"] = Json::object();
    smallest_["spec"]["worker"] = {{"replicas", 1},
                                   {"template", full_["spec"]["worker"]["template"]}};
  }

  Json With(const Field& field, Json value) const {
    Json manifest = full_;
    manifest[field.at] = std::move(value);
    return manifest;
  }

  Json Without(const Field& field) const {
    Json manifest = full_;
    manifest[field.at.parent_pointer()].erase(field.at.back());
    return manifest;
  }

  Json schema_;
  std::vector<Field> fields_;
  Json full_;      // every field of the schema
  Json smallest_;  // without fields that have a default
};

TEST_F(CrdTest, TheParserKnowsEveryFieldOfTheSchema) {
  EXPECT_EQ(ErrorsOf(full_), FieldErrors{}) << ToString(ErrorsOf(full_));
}

TEST_F(CrdTest, TheSchemaKnowsEveryFieldOfTheParser) {
  std::vector<Field> objects = {{"", Pointer(""), schema_},
                                {"spec", Pointer("/spec"), schema_["properties"]["spec"]}};
  objects.insert(objects.end(), fields_.begin(), fields_.end());
  for (const Field& object : objects) {
    if (object.type() != "object" || !object.schema.contains("properties")) continue;
    std::set<std::string> in_schema;
    for (const auto& [name, property] : object.schema["properties"].items()) in_schema.insert(name);
    Json manifest = full_;
    manifest[object.at / kNobodysField] = 1;
    const std::string path =
        object.path.empty() ? kNobodysField : object.path + "." + kNobodysField;
    EXPECT_EQ(Words(ErrorAt(manifest, path), "known here: "), in_schema) << "in " << object.path;
  }
}

TEST_F(CrdTest, NumbersHaveTheSameBounds) {
  for (const Field& field : fields_) {
    if (field.type() != "integer") continue;
    ASSERT_TRUE(field.schema.contains("minimum") && field.schema.contains("maximum")) << field.path;
    const std::int64_t low = field.schema["minimum"], high = field.schema["maximum"];
    for (const std::int64_t inside : {low, high}) {
      EXPECT_EQ(ErrorAt(With(field, inside), field.path).find("out of range"), std::string::npos)
          << field.path << " " << inside;
    }
    for (const std::int64_t outside : {low - 1, high + 1}) {
      EXPECT_THAT(ErrorAt(With(field, outside), field.path), HasSubstr("out of range"))
          << field.path << " " << outside;
    }
  }
}

TEST_F(CrdTest, ListsAndTextsHaveTheSameLengths) {
  for (const Field& field : fields_) {
    const bool list = field.type() == "array";
    if (!list && field.type() != "string") continue;
    const char* bound = list ? "maxItems" : "maxLength";
    const std::size_t high = field.schema.value(bound, 2000);
    const auto of_length = [&](std::size_t length) {
      if (!list) return Json(std::string(length, 'x'));
      return Json(Json::array_t(length, full_[field.at][0]));
    };
    if (!field.schema.contains("enum")) {
      EXPECT_EQ(ErrorAt(With(field, of_length(high)), field.path).find("at most"),
                std::string::npos)
          << field.path << " " << high;
    }
    if (!field.schema.contains(bound)) continue;
    EXPECT_THAT(ErrorAt(With(field, of_length(high + 1)), field.path), HasSubstr("at most"))
        << field.path << " " << high + 1;
  }
}

TEST_F(CrdTest, EnumsHaveTheSameValues) {
  for (const Field& field : fields_) {
    if (field.type() != "string") continue;
    const auto in_schema = field.schema.value("enum", Json::array()).get<std::set<std::string>>();
    EXPECT_EQ(Words(ErrorAt(With(field, kNobodysField), field.path), "must be one of "), in_schema)
        << field.path;
  }
}

TEST_F(CrdTest, TypesAreTheSame) {
  for (const Field& field : fields_) {
    const Json wrong = field.type() == "string" ? Json(3) : Json("3");
    EXPECT_NE(ErrorAt(With(field, wrong), field.path), "") << field.path << " as " << wrong;
  }
}

TEST_F(CrdTest, TheSameFieldsAreRequired) {
  for (const Field& field : fields_) {
    if (field.path.back() == ']') continue;
    const bool missed =
        ErrorAt(Without(field), field.path).find("is required") != std::string::npos;
    EXPECT_EQ(missed, field.required) << field.path;
  }
}

TEST_F(CrdTest, DefaultsAreTheSame) {
  const auto crd = local::CrdSchema::FromYaml(ReadCrd());
  ASSERT_TRUE(crd) << crd.error();
  Json defaulted = smallest_;
  crd->Default(defaulted);
  const auto by_parser = ParseHorovodJob(smallest_), by_schema = ParseHorovodJob(defaulted);
  ASSERT_TRUE(by_parser) << ToString(by_parser.error());
  ASSERT_TRUE(by_schema) << ToString(by_schema.error());
  Spec spec = by_schema->spec;
  EXPECT_EQ(spec, by_parser->spec);
  for (const Field& field : fields_) {
    if (field.required || field.type() == "object" || kNoDefault.count(field.path) != 0) continue;
    EXPECT_TRUE(field.schema.contains("default")) << field.path;
    if (field.in_list) continue;
    EXPECT_TRUE(defaulted.contains(field.at))
        << field.path << ": an object above it has no default";
  }
}

TEST_F(CrdTest, TheNameIsBoundedByTheSameRule) {
  const Json& name = schema_["properties"]["metadata"]["properties"]["name"];
  EXPECT_EQ(name["maxLength"], kMaxNameLength);
  for (const std::string text : {"digits", "Digits", "a.b", "-a", "a-", "a_b", "0", "a-b-c"}) {
    Json manifest = full_;
    manifest["metadata"]["name"] = text;
    const bool fits = std::regex_match(text, std::regex(name["pattern"].get<std::string>()));
    EXPECT_EQ(ErrorAt(manifest, "metadata.name").empty(), fits) << text;
  }
}

TEST_F(CrdTest, TheSameVariablesAreReserved) {
  const std::string env =
      "/properties/spec/properties/worker/properties/template/properties/spec/properties/containers"
      "/items/properties/env/items/x-kubernetes-validations/0/rule";
  const std::string rule = schema_[Pointer(env)];
  std::set<std::string> in_rule;
  const std::regex quoted("'([A-Z_]+[A-Z])'");
  for (std::sregex_iterator at(rule.begin(), rule.end(), quoted), end; at != end; ++at) {
    in_rule.insert((*at)[1]);
  }
  EXPECT_EQ(in_rule, ReservedEnv());
  EXPECT_THAT(rule, HasSubstr("startsWith('RINGMASTER_MOUNT_')"));
  EXPECT_TRUE(IsReservedEnv("RINGMASTER_MOUNT_SHM"));
}

int CountDefaults(const Json& schema) {
  int defaults = schema.is_object() && schema.contains("default") ? 1 : 0;
  if (!schema.is_structured()) return defaults;
  for (const Json& part : schema) defaults += CountDefaults(part);
  return defaults;
}

// An API server writes a new default into the specs of jobs that run. That would change the digest
// of their pods, so all of them would be suspended. PodsDigest() must leave out such a field.
TEST_F(CrdTest, ThePodTemplateGetsNoFurtherDefaults) {
  const Json& worker = schema_["properties"]["spec"]["properties"]["worker"];
  EXPECT_EQ(CountDefaults(worker["properties"]["template"]), 3);
}

TEST_F(CrdTest, NoFieldIsWithoutDescription) {
  for (const Field& field : fields_) {
    if (field.path.back() == ']') continue;
    EXPECT_TRUE(field.schema.contains("description")) << field.path;
  }
}

Status StatusWithEverything() {
  Status status;
  status.state = "Running";
  status.conditions = {{"Running", true, "AllIn", "all train", "2026-01-31T12:00:01Z", 3}};
  status.epoch = (std::uint64_t{1} << 40) | 7;
  status.ring = {{0, "digits-worker-0", 0, "node-1"}};
  status.last_rebuild = LastRebuild{7, "PodDrained", 0.08, 1};
  status.finished_epoch = 7;
  status.accounted_pods = {"uid-1"};
  status.counted_exits = {{"uid-3", 0, 2}};
  status.counted_exits_omitted = 1;
  status.proven_dead = {"uid-2"};
  status.troubled_nodes = {
      {"node-1", 3, "2026-01-31T12:00:00Z", "2026-01-31T12:10:00Z", "workers kept dying"}};
  status.ring_omitted = 1;
  status.restarts_from_checkpoint = 2;
  status.priority = -7;
  status.times_given_back = 3;
  status.last_given_back_time = status.running_since = "2026-01-31T12:00:01Z";
  status.start_time = status.completion_time = status.last_growth_time = "2026-01-31T12:00:00Z";
  return status;
}

TEST_F(CrdTest, TheStatusThatWeWriteIsTheStatusOfTheSchema) {
  const auto crd = local::CrdSchema::FromYaml(ReadCrd());
  ASSERT_TRUE(crd) << crd.error();
  Json object = full_;
  object["status"] = StatusToJson(StatusWithEverything());
  std::vector<Field> in_schema;
  Collect({"status", Pointer("/status"), schema_["properties"]["status"]}, &in_schema);
  EXPECT_EQ(object["status"]["view"], "1.7");
  for (const Field& field : in_schema) EXPECT_TRUE(object.contains(field.at)) << field.path;
  for (const auto& cause : crd->Validate(object))
    ADD_FAILURE() << cause.field << ": " << cause.message;
  EXPECT_EQ(crd->Prune(object), std::vector<std::string>{}) << "written, and lost on the way";
}

}  // namespace
}  // namespace ringmaster::api
