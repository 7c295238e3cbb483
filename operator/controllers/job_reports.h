// What the sidecars of one job have reported: the facts of each, the exits of workers that the
// status doesn't count yet, the newest view and the rebuilds. However much they report, what is
// kept is bounded. Pure.
//
// Thread rule: none; the registry's lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/job/rebuild.h"
#include "common/job/registration.h"
#include "common/job/worker_exit.h"
#include "common/membership/view.h"
#include "operator/controllers/sidecar_report.h"
#include "operator/planner/snapshot.h"

namespace ringmaster::controllers {

struct JobFacts {
  std::vector<planner::SidecarFacts> sidecars;
  std::vector<job::WorkerExit> exits;
  membership::ViewPtr view;  // the newest one that a sidecar reported
  planner::ToldView told_view;
  std::vector<job::Rebuild> rebuilds;
};

class JobReports {
 public:
  // More than any job has. Further sidecars must not connect.
  static constexpr std::size_t kMostSidecars = 16'384;

  // `keep_recovery_reports`: they still hold when their sidecar comes back (forgets.h).
  explicit JobReports(bool keep_recovery_reports = false)
      : keep_recovery_reports_(keep_recovery_reports) {}

  // A sidecar has a stream, perhaps a new one: some of what it has reported before still holds.
  void Connected(const job::Registration& registration, planner::Time now);
  void Disconnected(const std::string& pod_uid, planner::Time now);
  // Takes a report of the sidecar of this pod. Returns false, and changes nothing, if the report
  // makes no sense.
  bool Take(const std::string& pod_uid, SidecarReport report, planner::Time now);

  // Whether another sidecar, of this pod, would be one too many.
  bool IsFullFor(const std::string& pod_uid) const;
  JobFacts Facts() const;
  // The status now counts the first `count` exits of Facts.
  void ExitsCounted(std::size_t count);
  // Forgets sidecars that are not connected and whose pods are not in `pod_uids`.
  void Retain(const std::set<std::string>& pod_uids);

 private:
  void OnView(ViewReport report, planner::Time now, planner::SidecarFacts* sidecar);
  void OnEpoch(membership::Epoch epoch, planner::Time now);
  void OnEarlierExits(EarlierExits earlier, planner::SidecarFacts* sidecar);
  void OnWorkerExit(job::WorkerExit exit, planner::SidecarFacts* sidecar);
  void Merge(job::Rebuild rebuild);

  bool keep_recovery_reports_;
  std::map<std::string, planner::SidecarFacts> sidecars_;  // by pod uid
  std::vector<job::WorkerExit> exits_;
  // The newest incarnation that has ended, by pod uid and slot, because exits may be reported
  // twice.
  std::map<std::pair<std::string, int>, std::uint64_t> known_exits_;
  membership::ViewPtr view_;
  planner::ToldView told_view_;
  std::map<std::uint64_t, job::Rebuild> rebuilds_;  // by epoch
};

}  // namespace ringmaster::controllers
