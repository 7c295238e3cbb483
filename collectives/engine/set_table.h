// The process sets of the job: each has a number, and consists of some of the job's workers.
//
// A set is made of workers, not of ranks: a worker that is not in the view has no rank in it, and
// one that comes later is in no set; who was dropped and is let in again is the same worker. All
// ranks have the same table at the same operation, because sets are added and removed by operations
// that all ranks execute.
//
// Thread rule: a value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/wire.h"

namespace ringmaster::engine {

using Sets = std::map<int32_t, std::vector<std::string>>;  // the workers of each set, by its number

class SetTable {
 public:
  // Returns the new set's number. Numbers are not used again before Clear().
  int32_t Add(std::vector<std::string> workers) {
    sets_[next_] = std::move(workers);
    return next_++;
  }
  void Remove(int32_t set) { sets_.erase(set); }
  void Clear() {
    sets_.clear();
    next_ = 1;
  }
  bool Has(int32_t set) const { return set == 0 || sets_.contains(set); }
  bool Has(int32_t set, const std::string& worker) const {
    if (set == 0) return true;
    const auto found = sets_.find(set);
    return found != sets_.end() &&
           std::find(found->second.begin(), found->second.end(), worker) != found->second.end();
  }
  const Sets& sets() const { return sets_; }

  // A transfer has been executed in this job, so there may be more.
  void SeeTransfer() { has_transfers_ = true; }
  // Whether there may be operations in which some ranks have no part. Then all ranks must enter
  // rounds, even with nothing pending, so that these operations can be agreed on.
  bool HasOutsiders() const { return has_transfers_ || !sets_.empty(); }

  void Write(ByteWriter* out) const {
    out->Put(next_);
    out->Put(static_cast<uint32_t>(sets_.size()));
    for (const auto& [set, workers] : sets_) {
      out->Put(set);
      out->Put(static_cast<uint32_t>(workers.size()));
      for (const std::string& worker : workers) out->PutString(worker);
    }
    out->Put(static_cast<uint8_t>(has_transfers_));
  }
  void Read(ByteReader* in) {
    next_ = in->Get<int32_t>();
    const auto count = in->Get<uint32_t>();
    for (uint32_t i = 0; i < count && in->ok(); ++i) {
      auto& workers = sets_[in->Get<int32_t>()];
      const auto size = in->Get<uint32_t>();
      for (uint32_t k = 0; k < size && in->ok(); ++k) workers.push_back(in->GetString());
    }
    has_transfers_ = in->Get<uint8_t>() != 0;
  }

 private:
  int32_t next_ = 1;
  Sets sets_;
  bool has_transfers_ = false;
};

}  // namespace ringmaster::engine
