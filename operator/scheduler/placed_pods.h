// The pods that have a node: what each of them takes there, and for which job. There may be very
// many pods but few distinct values, so equal values are stored once. It also says which of them
// leave. Pure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "operator/scheduler/amounts.h"
#include "operator/scheduler/moment.h"

namespace ringmaster::scheduler {

class PlacedPods {
 public:
  struct Pod {
    std::shared_ptr<const std::string> node;
    std::shared_ptr<const std::string> job;  // null: the pod belongs to no job
    std::shared_ptr<const Amounts> requests;
  };
  // The reference stays valid until the pod is set again or removed.
  const Pod& Set(const std::string& uid, const std::string& node, const std::string& job,
                 Amounts requests);
  void Remove(const std::string& uid);
  // The pod, which has a node, is being terminated and should have gone by then, or it is not being
  // terminated. Returns true if it leaves now and did not before.
  bool SetLeaving(const std::string& uid, std::optional<Moment> by);
  // Null if the pod is unknown.
  const Pod* Find(const std::string& uid) const {
    const auto known = pods_.find(uid);
    return known == pods_.end() ? nullptr : &known->second;
  }
  const std::unordered_map<std::string, Pod>& all() const { return pods_; }  // by uid
  // The pods that are being terminated: uid to the time by which they should have gone.
  const std::map<std::string, Moment>& leaving() const { return leaving_; }

 private:
  std::shared_ptr<const std::string> Intern(const std::string& name);
  std::shared_ptr<const Amounts> Share(Amounts requests);

  std::unordered_map<std::string, Pod> pods_;
  std::map<std::string, Moment> leaving_;                            // uids of pods_
  std::map<std::string, std::shared_ptr<const std::string>> names_;  // of nodes and jobs
  std::map<Amounts, std::weak_ptr<const Amounts>> amounts_;
};

}  // namespace ringmaster::scheduler
