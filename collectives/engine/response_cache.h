// The requests that were agreed on before, each in a numbered slot. In a round a rank votes for a
// slot instead of announcing the whole request again.
//
// The slots and their contents are the same on all ranks, except for a rank's own priorities,
// because all ranks change the cache by the same calls in the same order (that of the responses).
//
// Thread rule: the engine's thread only.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/engine/request.h"

namespace ringmaster::engine {

class ResponseCache {
 public:
  explicit ResponseCache(size_t capacity = 1024) : capacity_(capacity) {}

  // The slot of exactly this request, with this rank's priority.
  std::optional<size_t> Find(const Request& request) const;
  bool Has(const std::string& key) const { return by_key_.contains(key); }  // Request::key()
  // The request in a slot that is used, with this rank's own priority.
  const Request& At(size_t slot) const { return slots_[slot].request; }
  // The same request with the priority on which the ranks have agreed.
  Request Agreed(size_t slot) const;
  bool IsUsed(size_t slot) const { return slots_[slot].used > 0; }
  // Puts the request in a free slot, or in the least recently used one. `own_priority`: the
  // priority with which this rank asks for it. If that changes later, the request is announced in
  // full again, so that all ranks know the new one.
  void Insert(const Request& request, int32_t own_priority);
  // Makes the slot the most recently used one.
  void Touch(size_t slot) { slots_[slot].used = ++clock_; }
  void Evict(const std::string& key);  // Request::key()
  void EvictSet(int32_t process_set);
  // Removes the broadcasts from this worker, and the transfers to and from it.
  void EvictWorker(const std::string& worker);
  // Removes and returns the requests of a group.
  std::vector<Request> TakeGroup(const Group& group);
  void Clear();
  // The number of slots, including free ones: a vote has one byte for each.
  size_t slots() const { return slots_.size(); }

 private:
  struct Slot {
    Request request;
    int32_t agreed_priority = 0;
    uint64_t used = 0;  // clock_ at the last use; 0: free
  };

  size_t TakeSlot();

  const size_t capacity_;
  uint64_t clock_ = 0;
  std::vector<Slot> slots_;
  std::unordered_map<std::string, size_t> by_key_;
};

}  // namespace ringmaster::engine
