// The jobs for which less important ones give up pods (preemption.h), and what was taken for each.
// Until those pods have gone, what is free where they were is kept for the taker.
//
// Pure. The capacity outlives it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/scheduler/preemption.h"
#include "operator/scheduler/waiting_job.h"

namespace ringmaster::scheduler {

// Which of the jobs that would begin to take pods are looked at in a pass, which is dear: some in
// each, in the order of the line, so that none is kept from it by many that can't have enough.
class Turns {
 public:
  // `changed`: something, since the last pass.
  void BeginPass(bool changed);
  // True: it is the next one's turn.
  bool Next();
  void Failed() { ++failed_; }
  // True: another pass has to follow.
  bool EndPass();

 private:
  std::size_t begin_ = 0;   // so many of them have failed in earlier passes
  std::size_t seen_ = 0;    // in this pass
  std::size_t tried_ = 0;   // of those
  std::size_t failed_ = 0;  // of those
  bool changed_ = false;    // something, since the first had its turn
};

class Takers {
 public:
  explicit Takers(Capacity* capacity) : capacity_(*capacity) {}
  Takers(const Takers&) = delete;
  Takers& operator=(const Takers&) = delete;

  // What a job that trains could give. False: nothing has changed.
  bool SetHolding(Holding holding);
  bool RemoveHolding(const std::string& job);
  // There is a less important job that could give.
  bool MayTake(const AdmissionRequest& request) const;

  void BeginPass(bool changed);
  // Pods of less important jobs leave, so that it can start. Until the pass ends it has the room
  // where they were, and what is free beside them: who is behind it gets none of that.
  bool TakeFor(WaitingJob* waiting, Moment now);
  // What was kept is free again; another pass brings it back. True: another one has to follow now.
  bool EndPass();
  // Then a pass is due even if nothing has changed: a pod that was counted on has not gone.
  std::optional<Moment> look_again() const { return look_again_; }

  bool Has(const std::string& job) const { return taken_.count(job) != 0; }
  // Nobody has to leave for it any more.
  bool Remove(const std::string& job) { return taken_.erase(job) != 0; }
  void RemoveIf(const std::function<bool(const std::string& job)>& which);
  const std::map<std::string, std::vector<TakenPod>>& taken() const { return taken_; }  // by taker

 private:
  std::set<std::string> TakenForOthersThan(const std::string& job) const;
  bool StaysSomething() const;

  Capacity& capacity_;
  Holdings holdings_;
  std::optional<int> lowest_;                           // priority among holdings_
  std::map<std::string, std::vector<TakenPod>> taken_;  // by the job that they were taken for
  std::optional<Moment> look_again_;
  Turns turns_;
  int repeats_ = 0;  // passes since something has changed
  // Of the pass that runs.
  std::set<std::string> taken_before_;  // uids
  std::vector<std::string> claims_;     // paths for which places are held
};

}  // namespace ringmaster::scheduler
