#include "collectives/engine/pending_table.h"

#include <utility>

namespace ringmaster::engine {

void PendingTable::Add(std::shared_ptr<Operation> operation) {
  by_name_[operation->request.name] = order_.size();
  order_.push_back(std::move(operation));
}

std::shared_ptr<Operation> PendingTable::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : order_[found->second];
}

std::shared_ptr<Operation> PendingTable::Take(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  std::shared_ptr<Operation> operation = std::move(order_[found->second]);
  by_name_.erase(found);
  if (by_name_.empty()) {
    order_.clear();
  } else if (order_.size() > 2 * by_name_.size() + 64) {
    Compact();
  }
  return operation;
}

std::vector<std::shared_ptr<Operation>> PendingTable::TakeAll() {
  Compact();
  by_name_.clear();
  return std::exchange(order_, {});
}

std::vector<const Request*> PendingTable::Requests() const {
  std::vector<const Request*> requests;
  for (const auto& operation : order_) {
    if (operation != nullptr) requests.push_back(&operation->request);
  }
  return requests;
}

void PendingTable::Compact() {
  std::vector<std::shared_ptr<Operation>> kept;
  for (auto& operation : order_) {
    if (operation == nullptr) continue;
    by_name_[operation->request.name] = kept.size();
    kept.push_back(std::move(operation));
  }
  order_ = std::move(kept);
}

}  // namespace ringmaster::engine
