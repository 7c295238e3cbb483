// The results that this rank has executed and keeps, numbered like the entries of a replicated log.
//
// All ranks execute in one order, so what a rank has executed is a prefix of one sequence, and two
// ranks differ only in how long their prefixes are. An entry is kept until every rank is known to
// have it: until then a survivor may need to hand it to another one (mode B of rule 14).
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

  // A part of every rank is in an allreduce's result, so each has entered it, and so each has
  // finished all that came before: those entries are dropped. Broadcasts and allgathers prove
  // nothing of the kind.
  const Retained& Append(Retained result) {
    if (HasAllreduce(result)) entries_.clear();
    return Keep(std::move(result));
  }
  // The same for a result that another rank has handed over: it proves nothing about the others.
  const Retained& Keep(Retained result) {
    entries_.push_back(std::move(result));
    ++next_number_;
    return entries_.back();
  }
  // An operation whose results are each rank's own, which all that take part have executed: so all
  // ranks, where it is the world's, have finished all that came before.
  const Retained& AppendConfirmed(Retained result) {
    if (result.response.process_set() == 0) entries_.clear();
    return Keep(std::move(result));
  }
  // Such an operation was executed here, and perhaps not by all ranks. Its result is kept until the
  // operation counts, or is executed once more.
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

  // All ranks are known to have executed what is here (the vote of a round is an allreduce too).
  void Trim() {
    entries_.clear();
    prepared_.reset();
  }
  // The state that a joiner was given stands for all operations below `next_number`.
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
      if (r.response.has_own_results()) continue;
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
