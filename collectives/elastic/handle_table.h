// Handles of the C ABI: numbers that stand for operations until rm_release.
//
// Thread rule: any thread.
#pragma once

#include <memory>
#include <unordered_map>

#include "collectives/engine/operation.h"
#include "common/sync/mutex.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

class HandleTable {
 public:
  rm_handle Add(std::shared_ptr<engine::Operation> operation) {
    sync::MutexLock lock(&mu_);
    operations_[++last_] = std::move(operation);
    return last_;
  }
  std::shared_ptr<engine::Operation> Find(rm_handle handle) const {
    sync::MutexLock lock(&mu_);
    const auto found = operations_.find(handle);
    return found == operations_.end() ? nullptr : found->second;
  }
  void Release(rm_handle handle) {
    sync::MutexLock lock(&mu_);
    operations_.erase(handle);
  }

 private:
  mutable sync::Mutex mu_;
  rm_handle last_ GUARDED_BY(mu_) = 0;
  std::unordered_map<rm_handle, std::shared_ptr<engine::Operation>> operations_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::elastic
