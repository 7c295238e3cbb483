// The streams that sidecars have opened, and by job what they have reported (job_reports.h) and
// been sent (sent_notices.h). All of it is reported again when sidecars reconnect, so a restarted
// operator knows everything after their registrations.
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
#include "operator/api/time.h"
#include "operator/controllers/forgets.h"
#include "operator/controllers/job_reports.h"
#include "operator/controllers/sent_notices.h"
#include "operator/controllers/sidecar_report.h"
#include "operator/planner/decision.h"
#include "operator/runtime/clock.h"

namespace ringmaster::controllers {

class Metrics;

// The sending half of a sidecar's stream. No method may block.
class NoticeSink {
 public:
  virtual ~NoticeSink() = default;
  virtual void Send(const planner::Notice& notice) = 0;
  // Another stream of the same pod has replaced this one: messages from this one are ignored.
  virtual void Replaced() {}
};

class SidecarRegistry {
 public:
  // `key` is namespace/name of a job that needs a reconcile after `delay`.
  using ChangeHandler =
      std::function<void(const std::string& key, std::chrono::milliseconds delay)>;
  using ConnectionId = std::uint64_t;
  // Whether this pod belongs to this job, judged by the operator's own caches.
  using PodLookup = std::function<bool(const job::Registration&)>;
  // Whether the job of this key has this uid, judged by the operator's own caches.
  using JobLookup = std::function<bool(const std::string& job_key, const std::string& job_uid)>;

  // `metrics` may be null; else it outlives the registry.
  explicit SidecarRegistry(Metrics* metrics = nullptr, runtime::Clock clock = {},
                           const Forgets& forgets = {})
      : metrics_(metrics), clock_(std::move(clock)), forgets_(forgets) {}

  void SetChangeHandler(ChangeHandler handler);
  // Without a lookup no pod, or no job, is known.
  void SetPodLookup(PodLookup lookup);
  void SetJobLookup(JobLookup lookup);

  // The sidecar's pod must exist. A cache may lag behind a new pod for a moment.
  bool KnowsPodOf(const job::Registration& registration) const;
  bool KnowsJob(const std::string& job_key, const std::string& job_uid) const;

  // Why this sidecar must not connect; empty if it may. The job with this uid has another name, or
  // more sidecars have connected for it than a job may have. A job that has not been reconciled yet
  // may have any name.
  std::string WhyNotConnect(const job::Registration& registration) const;

  // Called for the sidecars. A second stream of the same pod replaces the first.
  ConnectionId Connect(const job::Registration& registration, std::shared_ptr<NoticeSink> sink);
  void Disconnect(ConnectionId id);
  // A report of the sidecar whose stream this is; ignored if that isn't its current stream.
  void Take(ConnectionId id, SidecarReport report);

  // The number of open streams.
  std::size_t connected() const;

  // Called by the controller.
  JobFacts Facts(const std::string& job_uid) const;
  // When this process first called this for the view.
  api::Time FirstSeen(const std::string& job_key, const std::string& job_uid, std::uint64_t epoch);
  // When this process first called this for the job; long ago if the job had not begun by then.
  api::Time TakenOver(const std::string& job_key, const std::string& job_uid, bool begun);
  // Tells the sidecars of this job what each should know by now, except for what was said in its
  // stream already.
  void Notify(const std::string& job_uid, std::vector<planner::PodNotice> all);
  // The status now counts the first `count` exits of Facts.
  void ExitsCounted(const std::string& job_uid, std::size_t count);
  // Forgets sidecars that are not connected and whose pods are not in `pod_uids`.
  void Retain(const std::string& job_uid, const std::set<std::string>& pod_uids);
  // The job is being deleted: its sidecars are told that all pods leave, so that they don't look
  // for others that take over.
  void Dismiss(const std::string& job_uid);
  void DismissAll();
  // Jobs of this key with another uid have been deleted: dismisses and forgets them.
  void Forget(const std::string& job_key, const std::string& job_uid_to_keep = "");

 private:
  struct Stream {
    ConnectionId id = 0;
    std::shared_ptr<NoticeSink> sink;
    SentNotices sent;
  };
  struct Job {
    explicit Job(bool keep_recovery_reports) : reports(keep_recovery_reports) {}

    std::string key;
    bool key_is_known = false;  // the key is from the job's object, not from a sidecar
    JobReports reports;
    std::map<std::string, Stream> streams;  // the open ones, by pod uid
    SharedLists lists;                      // of what the streams were told last
    std::uint64_t seen_epoch = 0;
    api::Time seen_at;
    std::optional<api::Time> taken_over;
    planner::Uids dismissed;  // those of which each was told, as it was told that all leave
  };
  struct Place {
    std::string job_uid;
    std::string pod_uid;
  };

  Job& JobOf(const std::string& job_uid) REQUIRES(mu_);
  void SetKey(const std::string& job_uid, const std::string& job_key, Job* job) REQUIRES(mu_);
  void DropKey(const std::string& job_uid, const std::string& job_key) REQUIRES(mu_);
  void Erase(const std::string& job_uid) REQUIRES(mu_);
  // Calls the change handler.
  void Report(const std::string& key, std::chrono::milliseconds delay);

  Metrics* const metrics_;
  const runtime::Clock clock_;
  const Forgets forgets_;
  mutable sync::Mutex mu_;
  ChangeHandler handler_ GUARDED_BY(mu_);
  PodLookup pod_lookup_ GUARDED_BY(mu_);
  JobLookup job_lookup_ GUARDED_BY(mu_);
  ConnectionId last_id_ GUARDED_BY(mu_) = 0;
  std::map<std::string, Job> jobs_ GUARDED_BY(mu_);                    // by job uid
  std::map<std::string, std::set<std::string>> uids_ GUARDED_BY(mu_);  // of jobs_, by their key
  std::map<ConnectionId, Place> places_ GUARDED_BY(mu_);               // of the open streams
};

}  // namespace ringmaster::controllers
