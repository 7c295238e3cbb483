// What a member wants done: the outputs of `Member::Step`, and the state that it has stored. Plain
// values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "common/membership/ballot.h"
#include "common/membership/message.h"
#include "common/membership/quorum_loss.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

// What must survive a restart of the sidecar (rule 1). A pod that has no stored state starts with a
// new incarnation; the other fields are empty.
struct PersistentState {
  std::uint64_t incarnation = 0;
  ViewPtr view;  // the newest decided view known
  Ballot promised;
  Ballot accepted;
  ViewPtr accepted_value;
  bool stopping = false;  // the workers have been ordered to stop using `view`
  bool resigned = false;
  bool planning = false;      // as the coordinator: members may have been armed
  bool ran = false;           // an operation of `view` has completed: its joiners hold the state
  std::uint64_t lineage = 0;  // has promised to take part in no view of a lower one (rule 9)
};

struct Persist {
  PersistentState state;
};
struct Send {
  std::string to;       // pod uid
  std::string address;  // where its rendezvous service listens
  Message message;
};
struct SendToRecord {
  Message message;
};
// Views up to this one are over for good: a worker must stop using them at once.
struct StopWorkers {
  Epoch epoch = 0;
};
struct ArmWorkers {
  Epoch epoch = 0;
};
struct InstallView {
  ViewPtr view;
};
// This pod is out of the job by plan: its workers get `left`. The sidecar runs on until `done()` or
// its grace period ends, to notify members that have not received the view.
struct LeftByPlan {
  Epoch epoch = 0;
};
// The operator keeps only the newest report of this pod.
struct ReportToOperator {
  RecoveryReport report;
};
struct Log {
  std::string text;  // for people
};

using Action = std::variant<Persist, Send, SendToRecord, StopWorkers, ArmWorkers, InstallView,
                            LeftByPlan, ReportToOperator, Log>;

}  // namespace ringmaster::membership
