// Single objects that change rarely and are asked for often, each read anew after a while.
//
// Thread rule: safe from any thread; blocks for a call where the object is not known, or too old.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

class ObjectLookup {
 public:
  explicit ObjectLookup(std::shared_ptr<kube::KubeApi> api,
                        std::chrono::milliseconds age = std::chrono::seconds(30))
      : api_(std::move(api)), age_(age) {}

  // Of a resource without namespaces. Where it can't be read, what was read before still counts,
  // but for one that is not there any more.
  kube::Result<kube::Json> Get(const kube::Resource& resource, const std::string& name);

 private:
  struct Known {
    kube::Json object;
    std::chrono::steady_clock::time_point read;
  };

  const std::shared_ptr<kube::KubeApi> api_;
  const std::chrono::milliseconds age_;
  sync::Mutex mu_;
  std::map<std::string, Known> known_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
