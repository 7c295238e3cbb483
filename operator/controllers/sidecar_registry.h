// What the sidecars have said, and what they have been told. It remembers nothing that they don't
// say again when they come back: an operator that starts anew knows all after their registrations.
//
// Thread rule: every method is safe from any thread. Sinks and the change handler are called
// without a lock held.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/controllers/forgets.h"
#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/clock.h"

namespace ringmaster::controllers {

class Metrics;

// A sidecar's end of the line. Nothing here may block.
class NoticeSink {
 public:
  virtual ~NoticeSink() = default;
  virtual void Send(const planner::Notice& notice) = 0;
  // Another stream of the same pod has taken the place of this one: it is heard no more.
  virtual void Replaced() {}
};

class SidecarRegistry {
 public:
  // `key` is namespace/name of a job that wants a look after `delay`.
  using ChangeHandler =
      std::function<void(const std::string& key, std::chrono::milliseconds delay)>;
  using ConnectionId = std::uint64_t;
  // Is this pod one of this job's, as far as the operator knows by itself?
  using PodLookup = std::function<bool(const job::Registration&)>;

  struct JobFacts {
    std::vector<planner::SidecarFacts> sidecars;
    std::vector<job::WorkerExit> exits;
    membership::ViewPtr view;  // the newest that a sidecar reported
    std::vector<job::Rebuild> rebuilds;
  };

  // `metrics` may be null; else it outlives the registry.
  explicit SidecarRegistry(Metrics* metrics = nullptr, runtime::Clock clock = {},
                           const Forgets& forgets = {})
      : metrics_(metrics), clock_(std::move(clock)), forgets_(forgets) {}

  void SetChangeHandler(ChangeHandler handler);
  // None: no pod is known.
  void SetPodLookup(PodLookup lookup);

  // A sidecar has to be one of a pod that is there. A cache may lag behind a new pod for a moment.
  bool KnowsPodOf(const job::Registration& registration) const;

  // Empty, or why this sidecar is not let in: the job of this uid has another name, or more
  // sidecars have come in its name than a job may have. A job that was not looked at yet has any
  // name.
  std::string WhyNotConnect(const job::Registration& registration) const;

  // From the sidecars' side. A second stream of the same pod takes the place of the first.
  ConnectionId Connect(const job::Registration& registration, std::shared_ptr<NoticeSink> sink);
  void Disconnect(ConnectionId id);
  void OnReadiness(ConnectionId id, bool ready, std::vector<std::uint32_t> missing_slots,
                   membership::Candidate candidate);
  void OnView(ConnectionId id, membership::ViewPtr view, std::optional<job::Rebuild> rebuild);
  void OnWorkerExit(ConnectionId id, job::WorkerExit exit);
  void OnFinished(ConnectionId id, std::uint64_t epoch);
  void OnHealth(ConnectionId id, bool able, std::chrono::milliseconds unable);
  void OnStalls(ConnectionId id, std::vector<job::Stall> stalls);
  // For so long a planned change has waited for the end of a step there; 0: none waits any more.
  void OnStepAwaited(ConnectionId id, std::chrono::milliseconds awaited);
  void OnRecoveryReport(ConnectionId id, membership::RecoveryReport report);

  // Streams that stand.
  std::size_t connected() const;

  // From the controller's side.
  JobFacts Facts(const std::string& job_uid) const;
  // When this was first called for this view, by this process.
  planner::Time FirstSeen(const std::string& job_key, const std::string& job_uid,
                          std::uint64_t epoch);
  // When this was first called for the job, by this process; long ago if it had not begun by then.
  planner::Time TakenOver(const std::string& job_key, const std::string& job_uid, bool begun);
  // Sent unless this stream was told the same already.
  void Notify(const std::string& job_uid, const std::string& pod_uid,
              const planner::Notice& notice);
  // The first `count` exits of Facts are in the status now.
  void ExitsCounted(const std::string& job_uid, std::size_t count);
  // Forgets sidecars without a connection and whose pods are not in `pod_uids`.
  void Retain(const std::string& job_uid, const std::set<std::string>& pod_uids);
  void Forget(const std::string& job_key, const std::string& job_uid_to_keep = "");

 private:
  struct Sidecar {
    planner::SidecarFacts facts;
    ConnectionId connection = 0;
    std::shared_ptr<NoticeSink> sink;
    std::vector<planner::Notice> told;  // in this stream; one for each topic
  };
  struct Job {
    std::string key;
    bool key_is_known = false;  // from the job's object, not from a sidecar
    std::string uid;
    std::map<std::string, Sidecar> sidecars;  // by pod uid
    std::vector<job::WorkerExit> exits;
    // The newest incarnation that has ended, by pod uid and slot: reports may come twice.
    std::map<std::pair<std::string, int>, std::uint64_t> known_exits;
    membership::ViewPtr view;
    std::map<std::uint64_t, job::Rebuild> rebuilds;
    std::uint64_t seen_epoch = 0;
    planner::Time seen_at;
    std::optional<planner::Time> taken_over;
  };
  struct Place {
    std::string job_uid;
    std::string pod_uid;
  };

  // Runs `change` on the sidecar and its job if `id` is its current stream, then reports the job as
  // changed.
  void Change(ConnectionId id, std::chrono::milliseconds delay,
              const std::function<void(Job&, Sidecar&)>& change);
  void Report(const std::string& key, std::chrono::milliseconds delay);

  Metrics* const metrics_;
  const runtime::Clock clock_;
  const Forgets forgets_;
  mutable sync::Mutex mu_;
  ChangeHandler handler_ GUARDED_BY(mu_);
  PodLookup pod_lookup_ GUARDED_BY(mu_);
  ConnectionId last_id_ GUARDED_BY(mu_) = 0;
  std::map<std::string, Job> jobs_ GUARDED_BY(mu_);  // by job uid
  std::map<ConnectionId, Place> places_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
