// Writes events (events.k8s.io/v1) about a job and its pods. Repeating the same event within a
// while raises the count of one object instead of making another. Events are best effort: a failure
// is logged and ignored.
//
// Thread rule: every method is safe from any thread; Record blocks for one call to the API.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::runtime {

struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
};

class EventRecorder {
 public:
  EventRecorder(std::shared_ptr<kube::KubeApi> api, std::string instance);

  // `related`: another object in the same namespace that the event is about; none if its kind is
  // empty.
  void Record(const ObjectReference& regarding, bool warning, const std::string& reason,
              const std::string& action, const std::string& note,
              const ObjectReference& related = {});

 private:
  struct Series {
    std::string name;
    int count = 1;
    std::int64_t last_seen_ms = 0;
  };
  bool Create(const ObjectReference& regarding, const std::string& name, bool warning,
              const std::string& reason, const std::string& action, const std::string& note,
              const ObjectReference& related);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::string instance_;
  sync::Mutex mu_;
  std::map<std::string, Series> series_ GUARDED_BY(mu_);  // by uid, reason and note
};

}  // namespace ringmaster::runtime
