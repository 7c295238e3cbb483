// What must hold of the operations of a job (I4, I5): one reduction has one result, a step counts
// once, and what all ranks of a view have had is never lost.
//
// Keeps what has counted. Owner: Invariants. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sidecar/app/agent.h"
#include "tests/sim/journal.h"
#include "tests/sim/ring.h"
#include "tests/sim/script.h"
#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

class Agreement {
 public:
  // The worker that has given this, for people; null: it is gone.
  using FindGiver = std::function<WorkerPtr(const Given&)>;

  Agreement(Journal* journal, const Script* script, FindGiver find)
      : journal_(journal), script_(script), find_(std::move(find)) {}

  // Two ranks of the view that are equally far have seen the same.
  void CheckSame(const Given& one, const Given& other, Epoch epoch);
  // The ranks of a view vote here, so nobody of them is without what came before. `goes_on`: the
  // view does after this vote.
  void CheckFinal(const Given& given, Epoch epoch, bool goes_on);

  // An operation has this result now. `origin`: of whose parts, for people. True: it has run in
  // this lineage before.
  bool Reduced(std::uint64_t number, std::uint64_t value, const std::string& origin);

  // All ranks of a view have had the operations below this number.
  std::uint64_t final_number() const { return final_number_; }
  // A lineage begins with what its first members hold: the operations below `lowest`.
  void BeginLineage(std::uint64_t lowest);

 private:
  std::string Difference(const Given& one, const Given& other) const;

  Journal* const journal_;
  const Script* const script_;
  const FindGiver find_;
  // Nobody is without the operations below this number ever after, and every model that has had so
  // many and no more is the one of that number.
  std::uint64_t final_number_ = 0;
  std::map<std::uint64_t, std::uint64_t> final_models_;  // by number
  std::map<std::uint64_t, std::string> origins_;         // by result
  std::set<std::uint64_t> reduced_;                      // operations that ran in this lineage
};

}  // namespace ringmaster::app::sim
