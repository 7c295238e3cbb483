#include "collectives/elastic/view_frame.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/fields/reader.h"

namespace ringmaster::elastic {
namespace {

using nlohmann::json;

std::string ReadPodName(const json& value, std::string path, std::string* name) {
  fields::Reader reader(value, std::move(path));
  std::string pod, uid;
  reader.String("name", &pod, false);
  reader.String("uid", &uid, false);
  *name = pod + " (" + uid;
  return reader.error();
}

// Adds one rank to the view. `pods`: their names.
std::string ReadRank(const json& value, std::string path, const std::vector<std::string>& pods,
                     engine::WorkerView* view) {
  fields::Reader reader(value, std::move(path));
  PeerEndpoint peer;
  uint32_t pod = 0, slot = 0;
  uint64_t start = 0;
  bool joined = true;
  reader.String("tcp", &peer.tcp, false);
  reader.String("shm", &peer.shm, false);
  reader.Unsigned("pod", &pod, true);
  reader.Unsigned("slot", &slot, false);
  reader.Unsigned("incarnation", &start, false);
  reader.Bool("joined", &joined, false);
  if (reader.ok() && pod >= pods.size()) reader.Fail("pod", pod, "an index into pods");
  if (!reader.ok()) return reader.error();
  peer.pod = static_cast<int>(pod);
  if (view->size() == view->self) view->holds = !joined;
  // The uid and the start make the name unique: no process has the name of an earlier one, and pods
  // of one name differ in uid.
  view->workers.push_back("worker " + std::to_string(slot) + " of pod " + pods[pod] + ", start " +
                          std::to_string(start) + ")");
  view->peers.push_back(std::move(peer));
  return "";
}

}  // namespace

Status ParseView(const json& value, int self, engine::WorkerView* view) {
  *view = {};
  view->self = self;
  fields::Reader reader(value, "view");
  reader.Unsigned("epoch", &view->epoch, true);
  reader.Unsigned("parent", &view->parent, false);
  reader.String("reason", &view->reason, false);
  reader.Bool("train", &view->train, false);
  reader.Bool("planned", &view->planned, false);
  std::vector<std::string> pods;
  reader.Array("pods", false, [&](const json& pod, std::string path) {
    return ReadPodName(pod, std::move(path), &pods.emplace_back());
  });
  reader.Array("ranks", true, [&](const json& rank, std::string path) {
    return ReadRank(rank, std::move(path), pods, view);
  });
  if (!reader.ok()) return {RM_ERR_INVALID, reader.error()};
  if (view->epoch == 0) return {RM_ERR_INVALID, "view: epoch is 0"};
  if (self >= view->size()) {
    return {RM_ERR_INVALID, "view: self is " + std::to_string(self) + " of " +
                                std::to_string(view->size()) + " ranks"};
  }
  return {};
}

}  // namespace ringmaster::elastic
