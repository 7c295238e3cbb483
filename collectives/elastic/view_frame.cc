#include "collectives/elastic/view_frame.h"

#include <nlohmann/json.hpp>

namespace ringmaster::elastic {
namespace {

// No process has the name of another one before it: pods of one name differ in uid.
std::string WorkerName(const nlohmann::json& rank, const nlohmann::json& pod) {
  return "worker " + std::to_string(rank.value("slot", 0)) + " of pod " + pod.value("name", "") +
         " (" + pod.value("uid", "") + ", start " +
         std::to_string(rank.value("incarnation", uint64_t{0})) + ")";
}

}  // namespace

Status ParseView(const nlohmann::json& json, int self, engine::View* view) {
  try {
    *view = {};
    view->epoch = json.at("epoch").get<uint64_t>();
    view->parent = json.value("parent", uint64_t{0});
    view->reason = json.value("reason", "");
    view->train = json.value("train", true);
    view->planned = json.value("planned", false);
    view->self = self;
    const nlohmann::json pods = json.value("pods", nlohmann::json::array());
    for (const auto& rank : json.at("ranks")) {
      PeerEndpoint peer;
      peer.tcp = rank.value("tcp", "");
      peer.shm = rank.value("shm", "");
      peer.pod = rank.at("pod").get<int>();
      if (view->size() == self) view->holds = !rank.value("joined", true);
      view->workers.push_back(WorkerName(rank, pods.at(peer.pod)));
      view->peers.push_back(std::move(peer));
    }
  } catch (const nlohmann::json::exception& error) {
    return {RM_ERR_INVALID, std::string("view: ") + error.what()};
  }
  if (view->epoch == 0) return {RM_ERR_INVALID, "view: epoch is 0"};
  if (self >= view->size()) {
    return {RM_ERR_INVALID, "view: self is " + std::to_string(self) + " of " +
                                std::to_string(view->size()) + " ranks"};
  }
  return {};
}

}  // namespace ringmaster::elastic
