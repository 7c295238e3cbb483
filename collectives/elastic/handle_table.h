// Numbers of the C ABI: handles, which stand for operations until rm_release, and groups, which
// stand for what was prepared until rm_free_group.
//
// Thread rule: any thread.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>

#include "collectives/elastic/prepared_group.h"
#include "collectives/engine/operation.h"
#include "common/sync/mutex.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

template <typename T>
class NumberTable {
 public:
  uint64_t Add(std::shared_ptr<T> object) {
    sync::MutexLock lock(&mu_);
    objects_[++last_] = std::move(object);
    return last_;
  }
  // Null: there is none of this number.
  std::shared_ptr<T> Find(uint64_t number) const {
    sync::MutexLock lock(&mu_);
    const auto found = objects_.find(number);
    return found == objects_.end() ? nullptr : found->second;
  }
  void Release(std::span<const uint64_t> numbers) {
    sync::MutexLock lock(&mu_);
    for (uint64_t number : numbers) objects_.erase(number);
  }
  void Release(uint64_t number) { Release(std::span(&number, 1)); }

 private:
  mutable sync::Mutex mu_;
  uint64_t last_ GUARDED_BY(mu_) = 0;
  std::unordered_map<uint64_t, std::shared_ptr<T>> objects_ GUARDED_BY(mu_);
};
using HandleTable = NumberTable<engine::Operation>;
using GroupTable = NumberTable<const PreparedGroup>;

}  // namespace ringmaster::elastic
