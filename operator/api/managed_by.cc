#include "operator/api/managed_by.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/api/labels.h"

namespace ringmaster::api {

std::string ForeignManagerOf(const nlohmann::json& job) {
  std::string manager = fields::TextAt(job, "/spec/runPolicy/managedBy");
  return manager == kOperatorName ? "" : manager;
}

}  // namespace ringmaster::api
