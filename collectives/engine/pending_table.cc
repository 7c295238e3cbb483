#include "collectives/engine/pending_table.h"

#include <utility>

#include "collectives/element/element.h"

namespace ringmaster::engine {
namespace {

// "allreduce of [2, 3] float32"
std::string Described(const Request& request) {
  return std::string(KindName(request.kind)) + " of " + ShapeText(request) + " " +
         element::Name(request.dtype);
}

std::string DescribeElse(const Request& own, const Request& agreed) {
  const std::string mine = Described(own), theirs = Described(agreed);
  return "tensor '" + own.name + "' differs between ranks: this rank asked for " + mine +
         ", joined, and then the other ranks asked for " + theirs +
         (mine == theirs ? " that differs in something else" : "") + ", which they have done";
}

}  // namespace

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

// Of a rank that has not joined, the request is among those that were compared when the ranks
// agreed.
bool PendingTable::IsElse(const Operation& operation, const Request& agreed) const {
  if (agreed.kind == Kind::kJoin || !by_key_.contains(kJoinName)) return false;
  return !DescribeMismatch({{0, operation.request}, {1, agreed}}).empty();
}

std::shared_ptr<Operation> PendingTable::FindAgreed(const Request& agreed) const {
  auto operation = Find(agreed.key());
  return operation == nullptr || IsElse(*operation, agreed) ? nullptr : operation;
}

std::shared_ptr<Operation> PendingTable::TakeAgreed(const Request& agreed) {
  const auto found = Find(agreed.key());
  const bool is_else = found != nullptr && IsElse(*found, agreed);
  auto operation = Take(agreed.key());
  if (!is_else) return operation;
  operation->Complete({RM_ERR_MISMATCH, DescribeElse(operation->request, agreed)});
  return nullptr;
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
