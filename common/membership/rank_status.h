// Which workers of the current view have died, and so whether anybody still holds the training
// state. Forgotten with each new view.
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <string>
#include <vector>

#include "common/membership/local_workers.h"
#include "common/membership/quorum.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

class RankStatus {
 public:
  // `view` may be null.
  void EnterView(ViewPtr view);

  // An operation of the view has completed: its joiners hold the state too.
  void SetRan() { ran_ = true; }
  bool ran() const { return ran_; }
  // One for each rank: true for a worker of this pod that has said that it holds the state in this
  // view, whether or not an operation has completed. What other pods' workers hold is not known
  // here.
  const std::vector<bool>& held() const { return held_; }

  // Pod `pod` has reported that it lost these workers.
  void LoseWorkers(const std::string& pod, const std::vector<Worker>& workers);
  struct OwnRanks {
    bool any_alive = false;
    bool news = false;  // a worker is known to be dead that was not before
  };
  // Compares the ranks of pod `self` with its living workers.
  OwnRanks UpdateOwn(int self, const LocalWorkers& workers);
  std::vector<Worker> LostOf(int pod) const;
  bool AnyLost() const;
  const std::vector<bool>& lost() const { return lost_; }  // one for each rank

  // Every worker that holds the state is dead. `resigned` has one entry for each pod.
  bool StateLost(const std::vector<const Resignation*>& resigned) const;

 private:
  const std::vector<std::size_t>& RanksOf(int pod) const;

  ViewPtr view_;
  std::vector<std::vector<std::size_t>> ranks_of_;  // by pod
  std::vector<bool> lost_, held_;
  bool ran_ = false;
};

}  // namespace ringmaster::membership
