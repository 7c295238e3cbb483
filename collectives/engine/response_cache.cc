#include "collectives/engine/response_cache.h"

#include <algorithm>

namespace ringmaster::engine {

std::optional<size_t> ResponseCache::Find(const Request& request) const {
  const auto found = by_key_.find(request.key());
  if (found == by_key_.end() || slots_[found->second].request != request) return std::nullopt;
  return found->second;
}

Request ResponseCache::Agreed(size_t slot) const {
  Request agreed = slots_[slot].request;
  agreed.priority = slots_[slot].agreed_priority;
  return agreed;
}

void ResponseCache::Insert(const Request& request, int32_t own_priority) {
  Evict(request.key());
  const size_t slot = TakeSlot();
  by_key_[request.key()] = slot;
  slots_[slot] = {request, request.priority, ++clock_};
  slots_[slot].request.priority = own_priority;
}

void ResponseCache::Evict(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  slots_[found->second] = {};
  by_key_.erase(found);
}

std::vector<Request> ResponseCache::TakeGroup(const Group& group) {
  std::vector<Request> taken;
  for (const Slot& slot : slots_) {
    if (slot.used > 0 && slot.request.group == group) taken.push_back(slot.request);
  }
  for (const Request& request : taken) Evict(request.key());
  return taken;
}

void ResponseCache::EvictSet(int32_t process_set) {
  for (const Slot& slot : slots_) {
    if (slot.used > 0 && slot.request.process_set == process_set) Evict(slot.request.key());
  }
}

void ResponseCache::EvictWorker(const std::string& worker) {
  for (const Slot& slot : slots_) {
    const auto& members = slot.request.members;
    const bool needs_it = slot.request.root == worker ||
                          std::find(members.begin(), members.end(), worker) != members.end();
    if (slot.used > 0 && needs_it) Evict(std::string(slot.request.key()));
  }
}

void ResponseCache::Clear() {
  slots_.clear();
  by_key_.clear();
}

size_t ResponseCache::TakeSlot() {
  const auto free =
      std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.used == 0; });
  if (free != slots_.end()) return free - slots_.begin();
  if (slots_.size() < capacity_) {
    slots_.emplace_back();
    return slots_.size() - 1;
  }
  const auto oldest = std::min_element(
      slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.used < b.used; });
  by_key_.erase(oldest->request.key());
  return oldest - slots_.begin();
}

}  // namespace ringmaster::engine
