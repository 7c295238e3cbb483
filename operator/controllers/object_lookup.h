// Caches objects that change rarely and are needed often; each is read again after a while.
//
// Thread rule: safe from any thread; blocks for a call if the object is unknown or too old.
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
  // An object is read again when it is older than `age`, and one that did not exist or may not be
  // read after `absent_age`.
  explicit ObjectLookup(std::shared_ptr<kube::KubeApi> api,
                        std::chrono::milliseconds age = std::chrono::seconds(30),
                        std::chrono::milliseconds absent_age = std::chrono::seconds(3))
      : api_(std::move(api)), age_(age), absent_age_(absent_age) {}

  // For resources without namespaces. If the object can't be read, the cached one is returned,
  // unless the object was deleted.
  kube::Result<kube::Json> Get(const kube::Resource& resource, const std::string& name);
  // The same for all objects of the resource, as an array.
  kube::Result<kube::Json> List(const kube::Resource& resource);

 private:
  struct Known {
    kube::Result<kube::Json> object;  // an error: it did not exist, or may not be read
    std::chrono::steady_clock::time_point read;
  };
  template <class Read>
  kube::Result<kube::Json> Cached(const std::string& key, const Read& read);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::chrono::milliseconds age_, absent_age_;
  sync::Mutex mu_;
  std::map<std::string, Known> known_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
