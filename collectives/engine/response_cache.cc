#include "collectives/engine/response_cache.h"

#include <algorithm>

namespace ringmaster::engine {

std::optional<size_t> ResponseCache::Find(const Request& request) const {
  const auto found = by_name_.find(request.name);
  if (found == by_name_.end() || slots_[found->second].request != request) return std::nullopt;
  return found->second;
}

void ResponseCache::Insert(const Request& request) {
  Evict(request.name);
  const size_t slot = TakeSlot();
  by_name_[request.name] = slot;
  slots_[slot] = {request, ++clock_};
}

void ResponseCache::Evict(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return;
  slots_[found->second] = {};
  by_name_.erase(found);
}

void ResponseCache::Clear() {
  slots_.clear();
  by_name_.clear();
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
  by_name_.erase(oldest->request.name);
  return oldest - slots_.begin();
}

}  // namespace ringmaster::engine
