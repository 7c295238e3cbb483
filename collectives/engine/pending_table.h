// The operations that this rank has asked for and that have not completed, by key and in the order
// of asking.
//
// Thread rule: the engine's thread only.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/engine/operation.h"

namespace ringmaster::engine {

class PendingTable {
 public:
  void Add(std::shared_ptr<Operation> operation);
  // The operation with this Request::key(); null if there is none. Take() also removes it.
  std::shared_ptr<Operation> Find(const std::string& key) const;
  std::shared_ptr<Operation> Take(const std::string& key);
  // This rank's part in what has been agreed on; null if it takes part with nothing, because it has
  // joined. The others don't wait for a request of a rank that has joined, so what it had asked for
  // under this key may be something else, whose buffers are of another size. Then TakeAgreed()
  // completes that operation with RM_ERR_MISMATCH.
  std::shared_ptr<Operation> FindAgreed(const Request& agreed) const;
  std::shared_ptr<Operation> TakeAgreed(const Request& agreed);
  std::vector<std::shared_ptr<Operation>> TakeOfSet(int32_t process_set);
  std::vector<std::shared_ptr<Operation>> TakeAll();
  std::vector<const Request*> Requests() const;
  using AskedAt = std::map<std::string, std::chrono::steady_clock::time_point>;  // by key
  // The operations that were asked for before this moment.
  AskedAt AskedBefore(std::chrono::steady_clock::time_point moment) const;
  bool empty() const { return by_key_.empty(); }

 private:
  void Compact();
  bool IsElse(const Operation& operation, const Request& agreed) const;

  std::vector<std::shared_ptr<Operation>> order_;  // null: taken
  std::unordered_map<std::string, size_t> by_key_;
};

}  // namespace ringmaster::engine
