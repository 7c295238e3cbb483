#include "collectives/engine/pending_table.h"

#include <utility>

namespace ringmaster::engine {

void PendingTable::Add(std::shared_ptr<Operation> operation) {
  by_key_[operation->request.key()] = order_.size();
  order_.push_back(std::move(operation));
}

std::shared_ptr<Operation> PendingTable::Find(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : order_[found->second];
}

std::shared_ptr<Operation> PendingTable::Take(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  std::shared_ptr<Operation> operation = std::move(order_[found->second]);
  by_key_.erase(found);
  if (by_key_.empty()) {
    order_.clear();
  } else if (order_.size() > 2 * by_key_.size() + 64) {
    Compact();
  }
  return operation;
}

std::vector<std::shared_ptr<Operation>> PendingTable::TakeOfSet(int32_t process_set) {
  std::vector<std::shared_ptr<Operation>> taken;
  for (const auto& operation : std::vector(order_)) {
    if (operation == nullptr || operation->request.process_set != process_set) continue;
    taken.push_back(Take(operation->request.key()));
  }
  return taken;
}

std::vector<std::shared_ptr<Operation>> PendingTable::TakeAll() {
  Compact();
  by_key_.clear();
  return std::exchange(order_, {});
}

std::vector<const Request*> PendingTable::Requests() const {
  std::vector<const Request*> requests;
  for (const auto& operation : order_) {
    if (operation != nullptr) requests.push_back(&operation->request);
  }
  return requests;
}

PendingTable::AskedAt PendingTable::AskedBefore(
    std::chrono::steady_clock::time_point moment) const {
  AskedAt asked;
  for (const auto& operation : order_) {
    if (operation == nullptr) continue;
    if (operation->asked_at >= moment) break;
    asked[operation->request.key()] = operation->asked_at;
  }
  return asked;
}

void PendingTable::Compact() {
  std::vector<std::shared_ptr<Operation>> kept;
  for (auto& operation : order_) {
    if (operation == nullptr) continue;
    by_key_[operation->request.key()] = kept.size();
    kept.push_back(std::move(operation));
  }
  order_ = std::move(kept);
}

}  // namespace ringmaster::engine
