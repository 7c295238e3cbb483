// Which jobs a change of a node concerns: those with a pod that runs there, or that was let start
// although the node's end was announced.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

class JobsByNode {
 public:
  // A worker pod as it is now.
  void Set(const kube::Json& pod);
  void Remove(const kube::Json& pod);
  // The keys of the jobs, in order.
  std::set<std::string> On(const std::string& node) const;

 private:
  struct Pod {
    std::string job;
    std::set<std::string> nodes;
    friend bool operator==(const Pod&, const Pod&) = default;
  };
  void Forget(const std::string& uid) REQUIRES(mu_);

  mutable sync::Mutex mu_;
  std::map<std::string, Pod> pods_ GUARDED_BY(mu_);  // by uid
  // By node, then by job: how many of its pods.
  std::map<std::string, std::map<std::string, int>> jobs_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
