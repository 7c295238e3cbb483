// The worker processes of this pod: which live, which commands they have got (stop, arm) and what
// they have answered.
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "common/membership/member_state.h"
#include "common/membership/outbox.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

class LocalWorkers {
 public:
  LocalWorkers(MemberState* state, Outbox* outbox);

  // Call when the state's view has changed.
  void EnterView();

  // Takes the complete list of living workers. True: it has changed, or is the first one.
  bool Update(const std::vector<Worker>& living);
  bool known() const { return known_; }  // before the first list a missing worker proves nothing
  const std::vector<Worker>& living() const { return living_; }
  bool Alive(std::uint32_t slot, std::uint64_t incarnation) const;
  // Whether this worker lives and has said that it holds the job's state in the view `epoch`.
  bool Holds(std::uint32_t slot, std::uint64_t incarnation, Epoch epoch) const;

  // Orders the workers once to stop using the current view for good. That the view is over is
  // stored first: a sidecar that restarts must know that its workers will not go on in it.
  void StopView();
  bool stop_sent() const { return stop_sent_; }
  bool stopped() const { return stopped_; }
  // The workers have stopped all views up to `epoch`.
  void SetStopped(Epoch epoch);
  // All workers of this pod in the current view are dead, or have stopped to leave.
  void SetAllDead() { all_dead_ = stopped_ = true; }
  bool all_dead() const { return all_dead_; }

  // For a new lineage (rule 9): stops the workers whatever view they are in, because a pod that has
  // lost its file knows of none while its workers may train on.
  void StopAllBelow(Epoch epoch);
  bool StoppedBelow(Epoch epoch) const { return stopped_epoch_ >= epoch; }
  // A worker that was not told to stop may have connected, so earlier answers do not count any
  // more.
  void ForgetStopAll() { stop_all_epoch_ = stopped_epoch_ = 0; }

  // Orders the workers once to agree on a step at whose end they stop (rule 12).
  void Arm();

  // All ranks of the view have agreed to end the job: no new view is proposed any more. False: this
  // was known.
  bool SetFinishing(Epoch epoch);
  bool finishing() const { return finishing_ >= state_->epoch(); }
  bool ever_finishing() const { return finishing_ != 0; }

 private:
  // Constant after construction.
  MemberState* state_;
  Outbox* outbox_;

  // Over all views.
  bool known_ = false;
  std::vector<Worker> living_;
  Epoch stop_all_epoch_ = 0;
  Epoch stopped_epoch_ = 0;
  Epoch finishing_ = 0;

  // About the current view.
  bool stop_sent_ = false;
  bool stopped_ = false;
  bool all_dead_ = false;
  bool armed_ = false;
};

}  // namespace ringmaster::membership
