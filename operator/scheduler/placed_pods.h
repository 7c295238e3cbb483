// The pods that have a node: what each of them takes there, and for which job. There may be very
// many pods but few distinct values, so equal values are stored once. Pure.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "operator/scheduler/amounts.h"

namespace ringmaster::scheduler {

class PlacedPods {
 public:
  struct Pod {
    std::shared_ptr<const std::string> node;
    std::shared_ptr<const std::string> job;  // null: the pod belongs to no job
    std::shared_ptr<const Amounts> requests;
  };
  // Stays valid until the pod is set again or removed.
  const Pod& Set(const std::string& uid, const std::string& node, const std::string& job,
                 Amounts requests);
  void Remove(const std::string& uid) { pods_.erase(uid); }
  // Null if the pod is unknown.
  const Pod* Find(const std::string& uid) const {
    const auto known = pods_.find(uid);
    return known == pods_.end() ? nullptr : &known->second;
  }
  const std::unordered_map<std::string, Pod>& all() const { return pods_; }  // by uid

 private:
  std::shared_ptr<const std::string> Intern(const std::string& name);
  std::shared_ptr<const Amounts> Share(Amounts requests);

  std::unordered_map<std::string, Pod> pods_;
  std::map<std::string, std::shared_ptr<const std::string>> names_;  // of nodes and jobs
  std::map<Amounts, std::weak_ptr<const Amounts>> amounts_;
};

}  // namespace ringmaster::scheduler
