// What must hold after every event of a schedule: of views when they are decided (I2, I3, I5), of a
// pod when it promises something, and of the ranks of a view when they vote.
//
// Owner: World. One thread.
#pragma once

#include <string>
#include <vector>

#include "common/membership/member.h"
#include "tests/sim/agreement.h"
#include "tests/sim/decided_views.h"
#include "tests/sim/journal.h"
#include "tests/sim/pods.h"
#include "tests/sim/script.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

class Invariants {
 public:
  // All of them outlive it.
  struct Parts {
    const Timeline& time;
    Journal& journal;
    const JobSize& job;
    const Pods& pods;
    DecidedViews& views;
    const Script& script;
  };
  explicit Invariants(const Parts& parts)
      : parts_(parts), agreement_(&parts_.journal, &parts_.script, [this](const Given& given) {
          return parts_.pods.Find(given.pod, given.slot, given.incarnation);
        }) {}
  Invariants(const Invariants&) = delete;
  Invariants& operator=(const Invariants&) = delete;

  // What must hold of operations.
  Agreement& agreement() { return agreement_; }

  // Somebody takes this view as decided.
  void Announce(const ViewPtr& view);
  // The sidecar is about to store this.
  void CheckPromise(int pod, const membership::PersistentState& state);
  // No worker of the pod may complete a step in a view up to this one. `when`: what the pod does.
  void CheckNobodyUses(int pod, Epoch epoch, const std::string& when);
  // All ranks of the view have come to this vote.
  void CheckVote(const Stage& stage, const membership::View& view);

 private:
  void CheckTorn(const membership::View& view, const membership::View& parent);
  void BeginLineage(const membership::View& view);
  bool MayUse(const Worker& worker, Epoch epoch) const;
  void CheckOver(const membership::View& view);

  const Parts parts_;
  Agreement agreement_;
};

}  // namespace ringmaster::app::sim
