// The objects of one resource in a namespace, kept up by list and watch on a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

class Observer {
 public:
  // `on_object(object, gone)` on the observer's thread; after a break every object is told again.
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
  std::map<std::string, kube::Json> known_;  // by name; observer's thread only
  std::jthread thread_;                      // last: uses the others
};

}  // namespace ringmaster::cli
