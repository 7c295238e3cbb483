#include "sidecar/rendezvous/watch_choice.h"

#include <algorithm>

namespace ringmaster::rendezvous {
namespace {

constexpr size_t kProbedEachSide = 8;

}  // namespace

std::vector<HeartbeatPeer> PeersToWatch(const std::vector<HeartbeatPeer>& pods,
                                        const std::string& self,
                                        const std::set<std::string>& probed) {
  std::vector<HeartbeatPeer> peers;
  const size_t n = pods.size();
  for (size_t i = 0; i < n; ++i) {
    if (pods[i].uid == self) continue;
    const bool neighbour = pods[(i + 1) % n].uid == self || pods[(i + n - 1) % n].uid == self;
    if (n <= kAllPairsLimit || neighbour || probed.count(pods[i].uid) > 0) peers.push_back(pods[i]);
  }
  return peers;
}

std::set<std::string> PodsAround(const std::vector<HeartbeatPeer>& pods, const std::string& uid) {
  std::set<std::string> around;
  const auto centre = std::find_if(pods.begin(), pods.end(),
                                   [&uid](const HeartbeatPeer& pod) { return pod.uid == uid; });
  if (centre == pods.end()) return around;
  const size_t n = pods.size();
  const size_t at = static_cast<size_t>(centre - pods.begin());
  for (size_t distance = 1; distance <= std::min(kProbedEachSide, n - 1); ++distance) {
    around.insert(pods[(at + distance) % n].uid);
    around.insert(pods[(at + n - distance) % n].uid);
  }
  for (const HeartbeatPeer& pod : pods) {
    if (!pod.node.empty() && pod.node == centre->node) around.insert(pod.uid);
  }
  around.insert(uid);
  return around;
}

void ProbedPods::Add(const std::string& centre, const std::set<std::string>& pods,
                     std::chrono::milliseconds how_long) {
  centres_[centre] = how_long;
  for (const std::string& uid : pods) pods_[uid] = how_long;
}

bool ProbedPods::Age(std::chrono::milliseconds elapsed) {
  const auto age = [elapsed](std::map<std::string, std::chrono::milliseconds>* left) {
    for (auto& entry : *left) entry.second -= elapsed;
    return std::erase_if(*left, [](const auto& entry) { return entry.second.count() <= 0; }) > 0;
  };
  age(&centres_);
  return age(&pods_);
}

std::set<std::string> ProbedPods::uids() const {
  std::set<std::string> uids;
  for (const auto& [uid, left] : pods_) uids.insert(uid);
  return uids;
}

}  // namespace ringmaster::rendezvous
