// Which of the jobs that wait may start how many of their pods. One pass decides for all of them.
// What is granted is held for the pod until it runs, so that nobody else counts on it.
//
// In line stand, first, jobs that hold pods and have too few of them to train: what they hold is of
// no use until they get the rest. Then all others by priority, then by how long they have stood
// there. A job gets as many pods together as its smallest size needs, or none. What is left then
// makes jobs grow, in the same order.
//
// Where a job that can't start is more important than jobs that train, these give up pods that they
// can do without (preemption.h). Until those have gone, what is free where they were is kept for
// it.
//
// Small jobs pass a large one that doesn't fit yet (backfill), until it has waited for kPatience:
// from then on what is free is reserved for it, for one such job at a time. docs/scheduling.md says
// which reservations are sound.
//
// Pure: no clock, no thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/scheduler/capacity.h"
#include "operator/scheduler/gang_fit.h"
#include "operator/scheduler/preemption.h"
#include "operator/scheduler/prospect.h"

namespace ringmaster::scheduler {

enum class Standing {
  kWaits,  // has no pods
  kShort,  // has some, and too few to train
  kRuns,   // has enough, and wants more
};

struct AdmissionRequest {
  std::string job;  // namespace/name
  Standing standing = Standing::kWaits;
  int priority = 0;                               // higher ones first
  bool preempts = false;                          // may take pods from less important jobs
  Moment since;                                   // stands in line since then
  std::vector<std::shared_ptr<const Json>> pods;  // in the order in which they are granted
  std::vector<int> sizes;  // how many of them are of use together, ascending; at most all
};

// A pod that a job is to give up, and for whom.
struct PodDemand {
  std::string uid;
  std::string job;  // that needs the room: namespace/name
  int priority = 0;
  int needs = 0;  // so many pods it needs to start
  friend bool operator==(const PodDemand&, const PodDemand&) = default;
};

class Admission {
 public:
  // So long small jobs may pass one that doesn't fit.
  static constexpr std::chrono::seconds kPatience{120};

  Capacity& capacity() { return capacity_; }

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
  // The pods that this job is to give up.
  std::vector<PodDemand> DemandsOn(const std::string& job) const;

  // Somebody waits, and something has changed since the last pass.
  bool IsPassDue() const;
  // Then a pass is due even if nothing has changed: a pod that was counted on has not gone.
  std::optional<Moment> look_again() const { return look_again_; }
  void LookAgain() { asked_ = true; }
  // Decides for all; returns the jobs whose answer is another one now.
  std::vector<std::string> Pass(Moment now);

 private:
  struct Waiting {
    AdmissionRequest request;
    std::vector<ShapePtr> shapes;  // of the pods
    GangFit answer;
    bool Satisfied() const {
      return answer.decided && answer.fit == static_cast<int>(request.pods.size());
    }
  };
  struct Reservation {
    const Waiting* job = nullptr;    // null: none
    std::vector<std::string> paths;  // for which places are held
    std::shared_ptr<const Prospect> prospect;
    std::set<ShapePtr> refused;  // don't fit, even where the reservation is lifted
  };

  // So much of the answers as others learn of.
  struct Told {
    bool decided = true;
    int fit = 0;
    std::vector<GangFit::Leaver> leavers;
    friend bool operator==(const Told&, const Told&) = default;
  };

  static bool CanNotStart(const Waiting& waiting);
  bool OthersWait(const std::string& job) const;
  void KeepInLine(const std::string& job, const Waiting& waiting);
  std::vector<Waiting*> InOrder();
  bool HoldsAllGranted(const Waiting& waiting) const;
  bool IsAsBefore(const Waiting& waiting, const AdmissionRequest& request);
  void Replace(Waiting* waiting, AdmissionRequest request, const std::vector<std::string>& started);
  void ForgetLost();
  void Grow(Waiting* waiting, int target);
  void GrowInTurn(Waiting* waiting, int target);
  bool IsSureToFail(const Waiting& waiting, int target) const;
  bool TakeForIt(Waiting* waiting, Moment now);
  bool IsItsTurn();
  void BeginTurns(bool changed);
  void EndTurns();
  void RepeatIfSomeStay(const std::set<std::string>& taken_before);
  std::set<std::string> TakenForOthers(const std::string& job) const;
  void LiftClaims();
  void ForgetTakers();
  std::map<std::string, std::vector<PodDemand>> Demands() const;
  void Reserve(const Waiting& waiting);
  void HoldReserved();
  void LiftReservation();
  int Drop(const std::string& job, const std::vector<std::string>& keep);

  Capacity capacity_;
  std::map<std::string, Waiting> waiting_;                   // by job
  std::set<std::string> line_;                               // those of them that want more
  std::map<std::string, std::vector<std::string>> granted_;  // paths of pods that it was granted
  Holdings holdings_;
  std::map<std::string, std::vector<TakenPod>> taken_;  // by the job that they were taken for
  std::optional<Moment> look_again_;
  bool asked_ = false;  // since the last pass
  bool again_ = false;  // the last pass has not decided all
  int repeats_ = 0;     // passes since something has changed
  // Of jobs that would begin to take pods, in the order of the line.
  struct Turns {
    std::size_t begin = 0;   // so many of them have failed in earlier passes
    std::size_t seen = 0;    // in this pass
    std::size_t tried = 0;   // of those
    std::size_t failed = 0;  // of those
    bool changed = false;    // something, since the first had its turn
  };
  Turns turns_;

  // Of the pass that runs. In it less and less is free: where no more than so many pods of a shape
  // fitted, no more do later, and why.
  struct Bound {
    int fits = 0;
    std::string why;
  };
  std::map<ShapePtr, Bound> bounds_;
  Reservation reserved_;
  std::vector<std::string> claims_;  // paths for which places are held where pods are to leave
  std::optional<int> lowest_held_;   // priority among holdings_
  int reservations_tried_ = 0;
};

}  // namespace ringmaster::scheduler
