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

// Behind each kind stand the fields that it uses besides `from`, `incarnation` and `view`.
enum class MessageKind : std::uint8_t {
  // Deciding the successor of `view`.
  kPrepare,   // ballot
  kPromise,   // ballot, accepted + value: what the sender had accepted; number 1: as kRan
  kPropose,   // ballot, value
  kAccepted,  // ballot, value
  kRefused,   // promised: the sender has promised a higher ballot
  kResign,    // promised, accepted + value; number 1: as kRan. Sender takes no more part in `view`
  kDecided,   // value: the newest decided view that the sender knows
  // Finding one another.
  kFetch,  // the sender knows `view` and has heard of a newer one
  kJoin,   // candidate, reason; `view`: the newest the sender knows
  // To all members of `view`.
  kWorkersLost,  // workers: those of the sender that died; the pod itself stays a member
  // To the coordinator of `view`.
  kSuspect,   // pods, text: the sender does not hear these pods. With number 1: a link of its
              // workers is broken, and `pods` are those to which it breaks again and again
  kLeave,     // pods: leave by plan
  kBoundary,  // number: of the plan; all workers of the sender stand at the boundary
  kRan,       // the first operation of `view` has completed: its joiners hold the state
  // From the coordinator of `view`.
  kPlan,       // number: of the plan; arm the workers
  kFinishing,  // all ranks have agreed to end the job: no new view is proposed any more
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
  // To the record only: the view with the epoch `view`. A record that is behind moves up to it
  // before it votes.
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
