// The messages between the members of a job and the record. Delivery may fail, repeat or reorder.
//
// Plain data, no threads; the text form is message_json.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/membership/ballot.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

enum class MessageKind : std::uint8_t {
  // Deciding the successor of `view`.
  kPrepare,   // ballot
  kPromise,   // ballot, accepted + value: what the sender had accepted; number 1: as kRan
  kPropose,   // ballot, value
  kAccepted,  // ballot, value
  kRefused,   // promised: the sender has promised a higher ballot
  kResign,    // promised, accepted + value; number 1: as kRan. Takes no more part in `view`
  kDecided,   // value: a decided view, newer than `view` where that is set
  // Finding one another.
  kFetch,  // the sender knows `view` and has heard of a newer one
  kJoin,   // candidate, reason; `view`: the newest the sender knows
  // To all members of `view`.
  kWorkersLost,  // workers: those of the sender that died; the pod stays
  // To the coordinator of `view`.
  kSuspect,   // pods, text: the sender has not heard from them; number 1: a link of its workers is
              // broken, and those to the workers of these pods break again and again
  kLeave,     // pods: leave by plan
  kBoundary,  // number: of the plan; all workers of the sender stand at the boundary
  kRan,       // the first operation of `view` has completed: its joiners hold the state
  // From the coordinator of `view`.
  kPlan,       // number: of the plan; arm the workers
  kFinishing,  // all ranks agreed to end: nothing is rebuilt any more
};
std::string_view MessageKindText(MessageKind kind);

struct Message {
  MessageKind kind = MessageKind::kFetch;
  std::string from;               // pod uid; "record" for R
  std::uint64_t incarnation = 0;  // of the sender's membership state
  Epoch view = 0;                 // the view that the message is about
  Ballot ballot;
  Ballot promised;
  Ballot accepted;
  ViewPtr value;
  // To the record only: the view `view` itself, so that a record that is behind moves up first.
  ViewPtr base;
  std::uint64_t number = 0;
  Reason reason = Reason::kPodJoined;
  std::vector<std::string> pods;
  std::vector<Worker> workers;  // kWorkersLost
  Candidate candidate;          // kJoin
  std::string text;             // for people

  bool operator==(const Message& other) const;
};

inline constexpr std::string_view kRecordName = "record";

// For people and traces.
std::string Describe(const Message& message);

}  // namespace ringmaster::membership
