// The operations that this rank has asked for and that have not completed, by name and in the order
// of asking.
//
// Thread rule: the engine's thread only.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/engine/operation.h"

namespace ringmaster::engine {

class PendingTable {
 public:
  void Add(std::shared_ptr<Operation> operation);
  // Null if there is none of this name.
  std::shared_ptr<Operation> Find(const std::string& name) const;
  std::shared_ptr<Operation> Take(const std::string& name);
  std::vector<std::shared_ptr<Operation>> TakeAll();
  std::vector<const Request*> Requests() const;
  bool empty() const { return by_name_.empty(); }

 private:
  void Compact();

  std::vector<std::shared_ptr<Operation>> order_;  // null: taken
  std::unordered_map<std::string, size_t> by_name_;
};

}  // namespace ringmaster::engine
