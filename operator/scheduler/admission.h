// Which of the jobs that wait may start how many of their pods. One pass decides for all of them.
// What is granted is held for the pod until it runs, so that nobody else counts on it.
//
// In line stand, first, jobs that hold pods and have too few of them to train: what they hold is of
// no use until they get the rest. Then all others by priority; where that is the same, those that
// wait for their start before those that train and could grow, and then by how long they have stood
// there. A job gets as many pods together as its smallest size needs, or none. What is left then
// makes jobs grow, in the order of what they have, weighed by priority (shares.h).
//
// Where a job that can't start is more important than jobs that train, these give up pods that they
// can do without (preemption.h), and where that isn't enough all that they have (whole_jobs.h).
// Until those have gone, what is free where they were is kept for it.
//
// Small jobs pass a large one that doesn't fit yet (backfill), until it has waited for kPatience:
// from then on what is free is reserved for it, for one such job at a time. docs/scheduling.md says
// which reservations are sound.
//
// Pure: no clock, no thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"
#include "operator/scheduler/grants.h"
#include "operator/scheduler/node_calls.h"
#include "operator/scheduler/reservation.h"
#include "operator/scheduler/shares.h"
#include "operator/scheduler/takers.h"
#include "operator/scheduler/topology.h"
#include "operator/scheduler/waiting_job.h"

namespace ringmaster::scheduler {

// A pod that a job is to give up, and for whom.
struct PodDemand {
  std::string uid;
  std::string job;  // that needs the room: namespace/name
  int priority = 0;
  int needs = 0;       // so many pods it needs to start
  bool whole = false;  // with all others of the job that gives
  friend bool operator==(const PodDemand&, const PodDemand&) = default;
};

class Admission {
 public:
  // So long small jobs may pass one that doesn't fit.
  static constexpr std::chrono::seconds kPatience{120};

  Capacity& capacity() { return capacity_; }
  // Which jobs may stand Pending so that an autoscaler makes nodes for them; by default none.
  void SetNodeCallRules(NodeCallRules rules) { node_calls_.SetRules(rules); }

  // Puts the job in line, or changes what it asks for: as much as it was granted before, and has
  // not taken, it keeps. Decides at once, if it may, where nobody else waits; else the next Pass
  // does.
  // `started`: paths of its pods that may start or have started.
  // The answer: how many of the pods may start, and why not the next one.
  GangFit Ask(AdmissionRequest request, const std::vector<std::string>& started,
              bool at_once = true);
  // The job asks for nothing any more. What is held for its pods but `started` is free again.
  void Withdraw(const std::string& job, const std::vector<std::string>& started = {});

  // What a job that trains could give to more important ones; in place of what it said before.
  void SetHolding(Holding holding);
  void RemoveHolding(const std::string& job);
  // As NodeCalls::SetCalling.
  void SetCalling(const std::string& job, bool calls, bool alone = false);
  // The pods that this job is to give up.
  std::vector<PodDemand> DemandsOn(const std::string& job) const;

  // Somebody waits, and something has changed since the last pass.
  bool IsPassDue() const;
  // Then a pass is due even if nothing has changed: a pod that was counted on has not gone, or a
  // job has lacked room for so long that it calls for nodes.
  std::optional<Moment> look_again() const;
  void LookAgain() { asked_ = true; }
  // Decides for all; returns the jobs whose answer is another one now.
  std::vector<std::string> Pass(Moment now);

 private:
  using Demands = std::map<std::string, std::vector<PodDemand>>;  // by the job that is to give
  // So much of the answers as others learn of.
  struct Told {
    bool decided = true;
    int fit = 0;
    std::string domain;
    std::vector<GangFit::Leaver> leavers;
    bool calls_for_nodes = false;
    friend bool operator==(const Told&, const Told&) = default;
  };

  bool OthersWait(const std::string& job) const;
  void KeepInLine(const std::string& job, const WaitingJob& waiting);
  std::vector<WaitingJob*> InOrder();
  bool IsAsBefore(const WaitingJob& waiting, const AdmissionRequest& request);
  void Replace(WaitingJob* waiting, AdmissionRequest request,
               const std::vector<std::string>& started);
  void BeginPass();
  void ForgetLost();
  void Decide(const std::vector<WaitingJob*>& order, Moment now);
  void GiveTheLeast(WaitingJob* waiting, Moment now);
  void GrowFairly(std::vector<WaitingJob*> jobs, bool once);
  void GrowTo(int target, WaitingJob* waiting);
  void ForgetTakers();
  Demands AllDemands() const;

  Capacity capacity_;
  Grants grants_{&capacity_};
  Reservation reservation_{&capacity_, &grants_};
  Takers takers_{&capacity_};
  Topology topology_{&capacity_};
  Shares shares_{capacity_};
  NodeCalls node_calls_{&capacity_};
  std::map<std::string, WaitingJob> waiting_;  // by job
  std::set<std::string> line_;                 // those of them that want more
  bool asked_ = false;                         // since the last pass
  bool again_ = false;                         // the last pass has not decided all
};

}  // namespace ringmaster::scheduler
