// The objects of one resource in a namespace, kept up to date by list and watch on a thread of its
// own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

class Observer {
 public:
  // Calls `on_object(object, gone)` on the observer's thread; after an interruption for every
  // object again.
  Observer(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource, std::string ns,
           std::function<void(const kube::Json& object, bool gone)> on_object);
  ~Observer();

 private:
  void Run(std::stop_token stop);
  // Lists, then watches until the watch ends.
  void Follow(std::stop_token stop);

  const std::shared_ptr<kube::KubeApi> api_;
  const kube::Resource& resource_;
  const std::string ns_;
  const std::function<void(const kube::Json&, bool)> on_object_;
  std::map<std::string, kube::Json> known_;  // by name; used only by the observer's thread
  std::jthread thread_;                      // last member: its thread uses the others
};

}  // namespace ringmaster::cli
