// Copies the decided view to the record R until R has it (rule 8).
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include "common/membership/config.h"
#include "common/membership/outbox.h"
#include "common/membership/repeat.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

class RecordCopy {
 public:
  RecordCopy(Duration retry, Outbox* outbox) : retry_(retry), outbox_(outbox) {}

  void EnterView() { repeat_.Stop(); }
  // The record has answered that it knows this view.
  void SetKnown(Epoch epoch);
  bool Knows(Epoch epoch) const { return known_ >= epoch; }
  // Sends the current view, `epoch`, if it is time. `responsible`: this member must send
  // it, because it is the coordinator, or because it leaves and the others may not have the view.
  void Check(bool responsible, Epoch epoch);
  const Repeat& repeat() const { return repeat_; }

 private:
  // Constant after construction.
  Duration retry_;
  Outbox* outbox_;

  Epoch known_ = 0;
  Repeat repeat_;
};

}  // namespace ringmaster::membership
