#include "common/membership/record_copy.h"

#include <algorithm>

namespace ringmaster::membership {

void RecordCopy::SetKnown(Epoch epoch) { known_ = std::max(known_, epoch); }

void RecordCopy::Check(bool responsible, Epoch epoch) {
  if (!responsible || Knows(epoch)) {
    repeat_.Stop();
    return;
  }
  const TimePoint now = outbox_->now();
  if (repeat_.at && !repeat_.Due(now)) return;
  outbox_->Emit(SendToRecord{outbox_->MakeViewMessage()});
  repeat_.Again(now, retry_);
}

}  // namespace ringmaster::membership
