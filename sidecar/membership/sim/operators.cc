// The operators that vote for the record, and tell pods of its view.
#include "sidecar/membership/sim/world.h"

namespace ringmaster::membership::sim {

// As record.h says: answer from the own last write, store by compare-and-swap, read again if
// somebody else has written.
void World::AskRecord(int index, const Message& message, int from) {
  SimOperator& op = operators_[index];
  if (op.down_until > now_) return;
  Trace([&] { return "operator " + std::to_string(index) + " <- " + Describe(message); });
  RecordResult result = AnswerAsRecord(op.state, message, options_.without);
  if (result.changed && op.version != record_version_ &&
      !options_.without.Has(Clause::kRecordSwaps)) {
    ++coverage_.record_conflicts;
    op.state = record_;
    op.version = record_version_;
    result = AnswerAsRecord(op.state, message, options_.without);
  }
  if (result.changed) {
    record_ = op.state = result.state;
    op.version = ++record_version_;
  }
  if (random_.Chance(loss_)) return;
  At(now_ + Delay(), Kind::kFromRecord, 0, from, 0, 0, Command::kStop,
     Keep(std::move(result.answer)));
}

// Whoever is behind hears of the newest view that the record knows.
void World::TellFound(int pod) {
  SimPod& self = pods_[pod];
  if (!self.up) return;
  bool reachable = operators_[0].down_until <= now_;
  bool behind = EpochOf(self.member->current()) < EpochOf(record_.view);
  if (reachable && behind) StepMember(pod, ringmaster::membership::Found{record_.view});
  if (reachable) StepMember(pod, TargetChanged{min_pods_, 0});
  if (reachable && self.leaving) StepMember(pod, DrainRequested{{self.uid}, std::nullopt});
  if (self.up) At(now_ + 500 * kMs, Kind::kOperatorTells, pod);
}

}  // namespace ringmaster::membership::sim
