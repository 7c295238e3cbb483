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
    if (result.response.kind() == Kind::kAllreduce && result.bytes > 0) entries_.clear();
    return Keep(std::move(result));
  }
  // The same for a result that another rank has handed over: it proves nothing about the others.
  const Retained& Keep(Retained result) {
    entries_.push_back(std::move(result));
    ++next_number_;
    return entries_.back();
  }
  // All ranks are known to have executed what is here (the vote of a round is an allreduce too).
  void Trim() { entries_.clear(); }
  // The state that a joiner was given stands for all operations below `next_number`.
  void Restart(uint64_t next_number) {
    entries_.clear();
    next_number_ = next_number;
  }

  // Null if it isn't kept.
  const Retained* Find(uint64_t number) const {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Retained& r) { return r.response.number == number; });
    return found == entries_.end() ? nullptr : &*found;
  }
  std::vector<Holding::Result> Holdings() const {
    std::vector<Holding::Result> results;
    for (const Retained& r : entries_) results.push_back({r.response, r.bytes, r.rows_by_rank});
    return results;
  }

 private:
  std::deque<Retained> entries_;
  uint64_t next_number_ = 0;
};

}  // namespace ringmaster::engine
