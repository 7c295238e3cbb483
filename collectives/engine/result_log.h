// The results of the operations that this rank has executed and still keeps, numbered like the
// entries of a replicated log.
//
// All ranks execute in one order, so what a rank has executed is a prefix of one sequence, and two
// ranks differ only in how long their prefixes are. An entry is kept until every rank is known to
// have it, because until then a survivor may need to hand it over (mode B of rule 14).
//
// Thread rule: the engine's thread only.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/engine/recovery.h"
#include "collectives/engine/response.h"

namespace ringmaster::engine {

class ResultLog {
 public:
  // The number of the next operation: all below it were executed here.
  uint64_t next_number() const { return next_number_; }

  // Keeps the result of an operation that was executed here. An allreduce of all ranks has a part
  // of every rank in its result, so every rank has entered it and has finished everything before
  // it: the earlier entries are dropped. Broadcasts and allgathers prove nothing of the kind.
  const Retained& Append(Retained result) {
    if (HasAllreduce(result)) entries_.clear();
    return Keep(std::move(result));
  }
  // Keeps a result that another rank has handed over, which proves nothing about the other ranks.
  const Retained& Keep(Retained result) {
    entries_.push_back(std::move(result));
    ++next_number_;
    return entries_.back();
  }
  // Keeps the result of an operation that needs_confirmation() and that all ranks that take part
  // have executed. If these are all ranks of the view, they have finished everything before it.
  const Retained& AppendConfirmed(Retained result) {
    if (result.response.process_set() == 0) entries_.clear();
    return Keep(std::move(result));
  }
  // Keeps the result of such an operation that was executed here and perhaps not by all ranks,
  // until the operation is known to count (Commit) or not to count (DropPrepared).
  void Prepare(Retained result) { prepared_ = std::move(result); }
  // The operation will never count: drops what was prepared.
  void DropPrepared() { prepared_.reset(); }
  // The operation counts, because all ranks have executed it. Null if operation `number` was not
  // prepared here.
  const Retained* Commit(uint64_t number) {
    if (!prepared_ || prepared_->response.number != number) return nullptr;
    const Retained& kept = Keep(std::move(*prepared_));
    prepared_.reset();
    return &kept;
  }

  // Drops everything that is kept: every rank is known to have executed it (the vote of a round is
  // an allreduce, too), or nobody can use it any more.
  void Trim() {
    entries_.clear();
    prepared_.reset();
  }
  // This rank was given the state after all operations below `next_number`.
  void Restart(uint64_t next_number) {
    Trim();
    next_number_ = next_number;
  }

  // The result of this operation; null if it isn't kept.
  const Retained* Find(uint64_t number) const {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Retained& r) { return r.response.number == number; });
    return found == entries_.end() ? nullptr : &*found;
  }
  std::vector<Holding::Result> Holdings() const {
    std::vector<Holding::Result> results;
    for (const Retained& r : entries_) {
      results.push_back({r.response, {}, r.holds});
      if (r.response.needs_confirmation()) continue;
      for (const Part& part : r.parts)
        results.back().parts.push_back({part.bytes, part.rows_by_rank});
    }
    return results;
  }

 private:
  static bool HasAllreduce(const Retained& result) {
    size_t first = 0;
    for (size_t i = 0; i < result.parts.size(); ++i) {
      const Request& request = result.response.requests[first];
      if (request.kind == Kind::kAllreduce && request.process_set == 0 && result.parts[i].bytes > 0)
        return true;
      first += result.response.batches[i];
    }
    return false;
  }

  std::deque<Retained> entries_;
  std::optional<Retained> prepared_;
  uint64_t next_number_ = 0;
};

}  // namespace ringmaster::engine
