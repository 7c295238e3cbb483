// This member's part in a recovery from quorum loss (rule 9): it stops its workers, promises to
// take part in no lower lineage, and reports what it knows to the operator.
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <cstdint>

#include "common/membership/clause.h"
#include "common/membership/local_workers.h"
#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/rank_status.h"

namespace ringmaster::membership {

class LineagePromise {
 public:
  struct Parts {
    MemberState* state;
    LocalWorkers* workers;
    const RankStatus* ranks;
    Outbox* outbox;
  };
  LineagePromise(const Parts& parts, const Pod& self, ClauseSet without)
      : parts_(parts), self_(self), without_(without) {}

  // The operator asks for this lineage. Ignored if a view of it is known, or if a higher lineage is
  // promised.
  void Ask(std::uint64_t lineage);
  // The workers have changed since the report: a worker may have come that was not ordered to
  // stop, and the operator has to know.
  void Renew();
  // Stops the workers, and promises and reports once they have stopped. True: this member has
  // promised just now, so its attempts to decide a successor must end.
  bool Advance();

 private:
  void Report(std::uint64_t lineage);

  // Constant after construction.
  Parts parts_;
  Pod self_;
  ClauseSet without_;

  std::uint64_t asked_ = 0;     // the lineage that waits for its report; 0: none
  std::uint64_t reported_ = 0;  // the lineage of the last report
};

}  // namespace ringmaster::membership
