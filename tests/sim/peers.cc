// What sidecars send to each other: messages and heartbeats.
#include <utility>

#include "common/membership/message_json.h"
#include "tests/sim/world.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kBeat = 250 * kMs;
constexpr Micros kSuspectAfter = 1000 * kMs;

}  // namespace

void World::Deliver(int from, const std::string& to_uid, const membership::Message& message) {
  const int to = IndexOf(to_uid);
  if (network_.Loses() || !network_.Connected(from, to)) return;
  const std::string body = membership::EncodeMessage(message);
  for (int copies = network_.Copies(); copies > 0; --copies) {
    time_.After(network_.MessageDelay(), [this, from, to, body] {
      if (!network_.Connected(from, to)) return;
      const std::string& sender = pods_[from]->uid;
      ToAgent(to, pods_[to]->life, [body, sender](Agent& agent) {
        agent.peers().OnMessage(body, sender, sender + ":1");
      });
    });
  }
}

void World::Beat(int index, std::uint32_t life) {
  SimPod& pod = *pods_[index];
  if (pod.agent == nullptr || pod.life != life) return;
  time_.After(kBeat, [this, index, life] { Beat(index, life); });
  if (Asleep(pod)) return;
  std::vector<std::string> others;
  for (const auto& [uid, watched] : pod.watched) others.push_back(uid);
  for (const std::string& uid : others) {
    if (pod.agent == nullptr || pod.life != life) return;
    auto it = pod.watched.find(uid);
    if (it != pod.watched.end()) BeatOne(index, IndexOf(uid), &it->second);
  }
}

void World::BeatOne(int index, int other, Watched* watched) {
  SimPod& pod = *pods_[index];
  const SimPod& peer = *pods_[other];
  watched->silence += kBeat;
  const std::string uid = peer.uid;
  if (watched->silence > kSuspectAfter && !std::exchange(watched->suspected, true)) {
    ToAgent(index, pod.life, [uid](Agent& agent) { agent.peers().OnSuspect(uid, "silent"); });
  }
  const bool refused = peer.agent == nullptr && !Asleep(peer) && network_.BothWays(index, other);
  if (refused && !peer.gone) return NoticeDeath(other);
  if (!Reachable(other) || !network_.BothWays(index, other)) return;
  time_.After(random_.Between(200, 5 * kMs), [this, index, other, uid, life = pod.life] {
    if (!Reachable(other) || !network_.BothWays(index, other)) return;
    ToAgent(index, life, [this, index, other, uid](Agent& agent) {
      auto it = pods_[index]->watched.find(uid);
      if (it == pods_[index]->watched.end()) return;
      it->second = {};
      agent.peers().OnHeard(uid, pods_[other]->news, pods_[other]->news_step);
    });
  });
}

// The connections to a process that dies are reset, where the network carries that.
void World::NoticeDeath(int dead) {
  const std::string uid = pods_[dead]->uid;
  for (const auto& other : pods_) {
    auto it = other->watched.find(uid);
    if (other->agent == nullptr || it == other->watched.end()) continue;
    if (it->second.unreachable || !network_.BothWays(other->index, dead)) continue;
    const int index = other->index;
    time_.After(random_.Between(200, 60 * kMs), [this, index, dead, uid, life = other->life] {
      if (pods_[dead]->agent != nullptr || !network_.BothWays(index, dead)) return;
      ToAgent(index, life, [this, index, uid](Agent& agent) {
        auto at = pods_[index]->watched.find(uid);
        if (at == pods_[index]->watched.end() || std::exchange(at->second.unreachable, true))
          return;
        agent.peers().OnUnreachable(uid, "reset");
      });
    });
  }
}

}  // namespace ringmaster::app::sim
