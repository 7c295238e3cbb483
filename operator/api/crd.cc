#include "operator/api/crd.h"

#include "operator/api/crd_json.h"

namespace ringmaster::api {

const char* CrdText() { return kCrdJson; }

const nlohmann::json& JobSchema() {
  static const nlohmann::json kSchema = nlohmann::json::parse(kCrdJson).at(
      nlohmann::json::json_pointer("/spec/versions/0/schema/openAPIV3Schema"));
  return kSchema;
}

}  // namespace ringmaster::api
