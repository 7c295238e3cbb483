// The jobs for which less important ones give up pods (preemption.h), and the pods taken for each.
// Until those pods have gone, the free room of their nodes is kept for the job that takes them.
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

// Chooses which of the jobs that could begin to take pods are looked at in a pass. A look is
// expensive, so each pass looks at some, in the order of the line: many jobs that can't have enough
// do not keep the ones behind them from their turn.
class Turns {
 public:
  // `changed`: something has changed since the last pass.
  void BeginPass(bool changed);
  // Returns true if the next job of the line has its turn.
  bool Next();
  void Failed() { ++failed_; }
  // Returns true if another pass has to follow.
  bool EndPass();

 private:
  std::size_t begin_ = 0;   // the first so many jobs of the line have failed in earlier passes
  std::size_t seen_ = 0;    // jobs seen in this pass
  std::size_t tried_ = 0;   // jobs of seen_ that had a turn
  std::size_t failed_ = 0;  // jobs of tried_ that could not have enough
  bool changed_ = false;    // something has changed since the first job had its turn
};

class Takers {
 public:
  explicit Takers(Capacity* capacity) : capacity_(*capacity) {}
  Takers(const Takers&) = delete;
  Takers& operator=(const Takers&) = delete;

  // Sets what a training job could give up. Returns false if that is as before.
  bool SetHolding(Holding holding);
  bool RemoveHolding(const std::string& job);
  // A less important job exists that could give up pods.
  bool MayTake(const AdmissionRequest& request) const;

  void BeginPass(bool changed);
  // Takes pods of less important jobs so that the waiting job can start. Until the pass ends the
  // waiting job also holds the room of those pods and the free room beside them, so that jobs
  // behind it in line don't get it.
  bool TakeFor(WaitingJob* waiting, Moment now);
  // Frees what was kept; the next pass keeps it again. Returns true if another pass has to follow
  // now.
  bool EndPass();
  // At this time a pass is due even if nothing has changed: a pod that was counted on has not gone.
  std::optional<Moment> look_again() const { return look_again_; }

  bool Has(const std::string& job) const { return taken_.count(job) != 0; }
  // No pod has to leave for this job any more.
  bool Remove(const std::string& job) { return taken_.erase(job) != 0; }
  void RemoveIf(const std::function<bool(const std::string& job)>& which);
  // By the job that takes the pods.
  const std::map<std::string, std::vector<TakenPod>>& taken() const { return taken_; }

 private:
  std::set<std::string> TakenForOthersThan(const std::string& job) const;
  bool StaysSomething() const;

  Capacity& capacity_;
  Holdings holdings_;
  std::optional<int> lowest_;                           // lowest priority in holdings_
  std::map<std::string, std::vector<TakenPod>> taken_;  // by the job that the pods were taken for
  std::optional<Moment> look_again_;
  Turns turns_;
  int repeats_ = 0;  // passes since something has changed from outside
  // Of the current pass.
  std::set<std::string> taken_before_;  // uids of pods
  std::vector<std::string> claims_;     // paths for which places are held
};

}  // namespace ringmaster::scheduler
