// Assigns pending pods of the embedded cluster to its nodes.
//
// Owner and thread: LocalCluster; one thread of its own, woken by changes of pods and nodes.
#pragma once

#include <memory>
#include <thread>

#include "operator/local/store/store.h"

namespace ringmaster::local {

class Scheduler {
 public:
  explicit Scheduler(std::shared_ptr<Store> store);
  ~Scheduler();
  void Start();
  void Stop();

  // One pass over all pending pods; for tests, and what the thread does.
  void Pass();

 private:
  void Run(std::stop_token stop);
  void Explain(const Json& pod, const std::string& why);
  const std::shared_ptr<Store> store_;
  std::jthread thread_;
};

}  // namespace ringmaster::local
