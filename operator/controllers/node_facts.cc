#include "operator/controllers/node_facts.h"

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::controllers {

using Json = nlohmann::json;

planner::NodeFacts ReadNode(const Json& node) {
  planner::NodeFacts facts;
  const Json& spec = fields::Member(node, "spec");
  const Json& status = fields::Member(node, "status");
  facts.name = fields::Text(fields::Member(node, "metadata"), "name");
  facts.unschedulable = fields::Member(spec, "unschedulable") == Json(true);
  for (const Json& taint : fields::Member(spec, "taints")) {
    facts.taints.push_back(
        {fields::Text(taint, "key"), fields::Text(taint, "effect"), fields::Text(taint, "value")});
  }
  for (const Json& condition : fields::Member(status, "conditions")) {
    if (fields::Text(condition, "type") == "Ready")
      facts.ready = fields::Text(condition, "status") == "True";
  }
  const Json& info = fields::Member(status, "nodeInfo");
  facts.boot_id = fields::Text(info, "bootID");
  facts.machine = fields::Text(info, "machineID") + " " + fields::Text(info, "systemUUID");
  return facts;
}

}  // namespace ringmaster::controllers
