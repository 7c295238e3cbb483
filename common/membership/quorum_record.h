// R, the record of a job: one more voter where a view has an even number of pods (membership rule
// 8).
//
// Pure: message in, new state and answer out. The operator keeps the state in one API object. It
// makes the object with create-only, changes it by compare-and-swap, and sends the answer only
// after the write has succeeded:
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
  // The newest decided view that the record knows. Null only while the first view of `lineage` is
  // looked for, and the record was made for that because the former one was deleted.
  ViewPtr view;
  Ballot promised;
  Ballot accepted;
  ViewPtr accepted_value;
  // The record votes on no view of a lower lineage. Above the lineage of `view` while the first
  // view of this lineage is looked for (recovery from quorum loss, quorum_loss.h).
  std::uint64_t lineage = 0;
};

struct RecordResult {
  QuorumRecord state;
  Message answer;        // kPromise, kAccepted, kRefused, or kDecided with the record's own view
  bool changed = false;  // `state` must be stored before the answer leaves
};

// The record as it is created: it names the first view.
QuorumRecord NewRecord(ViewPtr first);

// Answers kPrepare and kPropose (both with `base`) and kDecided. Answers every other message with
// the record's own view.
RecordResult AnswerAsRecord(const QuorumRecord& state, const Message& message,
                            ClauseSet without = {});

}  // namespace ringmaster::membership
