// Tries what the nodes would have free if some pods had gone and others had places. The destructor
// restores everything.
//
// Pure. The capacity outlives it, and nothing else changes the capacity meanwhile.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"

namespace ringmaster::scheduler {

class WhatIf {
 public:
  explicit WhatIf(Capacity* capacity) : capacity_(capacity) {}
  ~WhatIf() {
    for (auto tried = tried_.rbegin(); tried != tried_.rend(); ++tried) capacity_->Undo(*tried);
    for (const std::string& uid : out_) capacity_->PutBack(uid);
  }
  WhatIf(const WhatIf&) = delete;
  WhatIf& operator=(const WhatIf&) = delete;

  bool IsOut(const std::string& uid) const { return out_.count(uid) != 0; }
  // The pod must have a node.
  void TakeOut(const std::string& uid) {
    if (out_.insert(uid).second) capacity_->TakeOut(uid);
  }
  void PutBack(const std::string& uid) {
    if (out_.erase(uid) != 0) capacity_->PutBack(uid);
  }
  void Hold(const Json& pod, const ShapePtr& shape, const std::string& node,
            const std::string& job) {
    tried_.push_back(capacity_->Try(pod, shape, node, job));
  }

 private:
  Capacity* const capacity_;
  std::set<std::string> out_;  // uids
  std::vector<Capacity::Tried> tried_;
};

}  // namespace ringmaster::scheduler
