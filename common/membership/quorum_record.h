// R, the record of a job: one more voter where a view has an even number of pods (membership rule
// 8).
//
// Pure: message in, new state and answer out. The operator keeps the state in one API object made
// with create-only, changes it by compare-and-swap, and sends the answer only after the write has
// succeeded:
//
//   for (;;) {
//     auto [state, version] = Read();  // quorum read or own last write, never the watch cache
//     RecordResult result = AnswerAsRecord(state, message);
//     if (!result.changed || WriteIfVersion(result.state, version)) return result.answer;
//   }
#pragma once

#include "common/membership/ballot.h"
#include "common/membership/clause.h"
#include "common/membership/message.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

struct QuorumRecord {
  ViewPtr view;  // the newest decided view it knows; never empty once the record is made
  Ballot promised;
  Ballot accepted;
  ViewPtr accepted_value;
  // Views of lower lineages get no vote. Above the lineage of `view`: a first view of this lineage
  // is being looked for (recovery from quorum loss, quorum_loss.h).
  std::uint64_t lineage = 0;
};

struct RecordResult {
  QuorumRecord state;
  Message answer;        // kPromise, kAccepted, kRefused, or kDecided with the record's own view
  bool changed = false;  // `state` must be stored before the answer leaves
};

// The record as it is created: it names the first view.
QuorumRecord NewRecord(ViewPtr first);

// Answers kPrepare, kPropose (both with `base`) and kDecided. Anything else is answered with the
// record's own view.
RecordResult AnswerAsRecord(const QuorumRecord& state, const Message& message,
                            ClauseSet without = {});

}  // namespace ringmaster::membership
