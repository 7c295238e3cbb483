#include "operator/controllers/node_facts.h"

#include <nlohmann/json.hpp>

#include "operator/controllers/lenient_json.h"

namespace ringmaster::controllers {

using Json = nlohmann::json;

planner::NodeFacts ReadNode(const Json& node) {
  planner::NodeFacts facts;
  const Json& spec = At(node, "spec");
  const Json& status = At(node, "status");
  facts.name = Text(At(node, "metadata"), "name");
  facts.unschedulable = At(spec, "unschedulable") == Json(true);
  for (const Json& taint : At(spec, "taints")) {
    facts.taints.push_back({Text(taint, "key"), Text(taint, "effect"), Text(taint, "value")});
  }
  for (const Json& condition : At(status, "conditions")) {
    if (Text(condition, "type") == "Ready") facts.ready = Text(condition, "status") == "True";
  }
  const Json& info = At(status, "nodeInfo");
  facts.boot_id = Text(info, "bootID");
  facts.machine = Text(info, "machineID") + " " + Text(info, "systemUUID");
  return facts;
}

}  // namespace ringmaster::controllers
