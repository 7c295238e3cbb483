// Remembers why objects that a job needs can't be created, in the API server's words, and when to
// try again: at growing intervals, however often the job is reconciled. A template that the API
// server calls invalid stays so until it is changed.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/sync/mutex.h"
#include "operator/api/horovod_job.h"
#include "operator/kube/kube_api.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

// In order of importance: a condition shows only one problem.
enum class Needed {
  kPods,    // creation of pods
  kDryRun,  // the dry run of that
  kRecord,
  kObjects,
  kRequests,  // ProvisioningRequests
};

// What people read of the error, the same in the job's condition and in its event: what can't be
// made, and why, with the API server's words at the end.
std::string ProblemText(Needed what, const kube::Error& error);

class CreationProblems {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CreationProblems(runtime::WorkQueueOptions backoff = {}) : backoff_(backoff) {}

  // A template that was called invalid is tried again this often, in case something else was wrong.
  static constexpr std::chrono::minutes kRetry{5};
  // After this time whatever had refused something may have been mended.
  static constexpr std::chrono::hours kRefusalCounts{1};
  // How often to check whether a name has become free.
  static constexpr std::chrono::milliseconds kNameRetry{500};

  // How long to wait before the next try; zero: try now.
  std::chrono::milliseconds Pause(const api::HorovodJob& job, Needed what,
                                  Clock::time_point now) const;
  // Records the problem, unless `error` is one that people need not act on.
  void Failed(const api::HorovodJob& job, Needed what, const kube::Error& error,
              Clock::time_point now);
  // A pod that is being deleted has the name, most likely one of an earlier job of this name.
  void NameIsTaken(const api::HorovodJob& job, Needed what, const std::string& pod,
                   Clock::time_point now);
  void Worked(const api::HorovodJob& job, Needed what);
  // Pods could be created as far as a dry run shows. What has kept them from it before, and may be
  // over, is not shown any more; that it was refused counts on.
  void DryRunWorked(const api::HorovodJob& job, Clock::time_point now);
  // The API server has not been down, but has refused this, and it was not made since: less than
  // kRefusalCounts ago, with the same spec.
  bool WasRefused(const api::HorovodJob& job, Needed what, Clock::time_point now) const;
  void Forget(const std::string& job_uid);

  // Sets the condition Created of `status`, or Degraded if the job has trained before.
  void Show(const api::HorovodJob& job, bool has_pods, const std::string& now,
            api::Status* status) const;

 private:
  struct Problem {
    std::string reason;   // of the condition
    std::string message;  // for people
    std::int64_t generation = 0;
    int failures = 0;  // in a row
    Clock::time_point retry_at;
    bool shown = true;
    std::optional<Clock::time_point> refused_at;  // by a rule; nullopt: it failed otherwise
  };

  const runtime::WorkQueueOptions backoff_;
  mutable sync::Mutex mu_;
  std::map<std::pair<std::string, Needed>, Problem> problems_ GUARDED_BY(mu_);  // by job uid
};

// The namespace is being deleted, so nothing can be created in it any more, nor needs to be.
bool NamespaceGoes(const kube::Error& error);

}  // namespace ringmaster::controllers
