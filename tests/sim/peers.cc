#include "tests/sim/peers.h"

#include <utility>

#include "common/membership/message_json.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kBeat = 250 * kMs;
constexpr Micros kSuspectAfter = 1000 * kMs;

}  // namespace

void Peers::Deliver(int from, const std::string& to_uid, const membership::Message& message,
                    const std::string& change) {
  const int to = IndexOf(to_uid);
  if (parts_.network.Loses() || !parts_.network.Connected(from, to)) return;
  const std::string body = membership::EncodeMessage(message, change);
  for (int copies = parts_.network.Copies(); copies > 0; --copies) {
    parts_.time.After(parts_.network.MessageDelay(), [this, from, to, body] {
      if (!parts_.network.Connected(from, to)) return;
      const std::string& sender = parts_.pods[from]->uid;
      parts_.to_agent(to, parts_.pods[to]->life, [body, sender](Agent& agent) {
        agent.peers().OnMessage(body, sender, sender + ":1");
      });
    });
  }
}

void Peers::Beat(int index, std::uint32_t life) {
  SimPod& pod = *parts_.pods[index];
  if (pod.agent == nullptr || pod.life != life) return;
  parts_.time.After(kBeat, [this, index, life] { Beat(index, life); });
  if (parts_.pods.Asleep(pod)) return;
  std::vector<std::string> others;
  for (const auto& [uid, watched] : pod.watched) others.push_back(uid);
  for (const std::string& uid : others) {
    if (pod.agent == nullptr || pod.life != life) return;
    auto it = pod.watched.find(uid);
    if (it != pod.watched.end()) BeatOne(index, IndexOf(uid), &it->second);
  }
}

void Peers::BeatOne(int index, int other, Watched* watched) {
  SimPod& pod = *parts_.pods[index];
  const SimPod& peer = *parts_.pods[other];
  watched->silence += kBeat;
  const std::string uid = peer.uid;
  if (watched->silence > kSuspectAfter && !std::exchange(watched->suspected, true)) {
    parts_.to_agent(index, pod.life,
                    [uid](Agent& agent) { agent.peers().OnSuspect(uid, "silent"); });
  }
  const bool refused =
      peer.agent == nullptr && !parts_.pods.Asleep(peer) && parts_.network.BothWays(index, other);
  if (refused && !peer.gone) return NoticeDeath(other);
  if (!parts_.pods.Reachable(other) || !parts_.network.BothWays(index, other)) return;
  parts_.time.After(
      parts_.random.Between(200, 5 * kMs), [this, index, other, uid, life = pod.life] {
        if (!parts_.pods.Reachable(other) || !parts_.network.BothWays(index, other)) return;
        parts_.to_agent(index, life, [this, index, other, uid](Agent& agent) {
          auto it = parts_.pods[index]->watched.find(uid);
          if (it == parts_.pods[index]->watched.end()) return;
          it->second = {};
          agent.peers().OnHeard(uid, parts_.pods[other]->news, parts_.pods[other]->news_step);
        });
      });
}

// The connections to a process that dies are reset, where the network carries that.
void Peers::NoticeDeath(int dead) {
  const std::string uid = parts_.pods[dead]->uid;
  for (const auto& other : parts_.pods) {
    auto it = other->watched.find(uid);
    if (other->agent == nullptr || it == other->watched.end()) continue;
    if (it->second.unreachable || !parts_.network.BothWays(other->index, dead)) continue;
    const int index = other->index;
    parts_.time.After(parts_.random.Between(200, 60 * kMs), [this, index, dead, uid,
                                                             life = other->life] {
      if (parts_.pods[dead]->agent != nullptr || !parts_.network.BothWays(index, dead)) return;
      parts_.to_agent(index, life, [this, index, uid](Agent& agent) {
        auto at = parts_.pods[index]->watched.find(uid);
        if (at == parts_.pods[index]->watched.end() || std::exchange(at->second.unreachable, true))
          return;
        agent.peers().OnUnreachable(uid, "reset");
      });
    });
  }
}

}  // namespace ringmaster::app::sim
