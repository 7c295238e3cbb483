// Nodes of other processes that have fallen silent get no new pods until they are heard again. That
// is all: silence proves nothing of the pods that they have.
//
// Owner and thread: LocalCluster; one thread of its own.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "operator/local/store/store.h"

namespace ringmaster::local {

inline constexpr char kSilentTaint[] = "node.kubernetes.io/unreachable";

class NodeMonitor {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit NodeMonitor(std::shared_ptr<Store> store);
  ~NodeMonitor();

  void Start();
  void Stop();
  // One look at all nodes; for tests, and what the thread does.
  void Look(TimePoint now);

 private:
  // By this machine's clock: others may be wrong.
  struct Heard {
    std::string heartbeat;
    TimePoint at;
  };

  void Mark(Json node, bool silent);

  const std::shared_ptr<Store> store_;
  std::map<std::string, Heard> heard_;  // by node; of whoever calls Look
  std::jthread thread_;
};

}  // namespace ringmaster::local
