// Why what a job needs can't be made, as the API server says, and when it is worth another try:
// what is refused is asked for again more and more slowly, however often the job is looked at, and
// a template that the API server calls wrong stays wrong until somebody changes it.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "common/sync/mutex.h"
#include "operator/api/horovod_job.h"
#include "operator/kube/kube_api.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

// In the order in which they are told of: only one fits into a condition.
enum class Needed {
  kPods,   // to be made
  kGates,  // of pods that are there, to be lifted
  kRecord,
  kObjects,
};

class CreationProblems {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CreationProblems(runtime::WorkQueueOptions backoff = {}) : backoff_(backoff) {}

  // A wrong template is tried again this often, for the case that it wasn't the template.
  static constexpr std::chrono::minutes kRetry{5};
  // And so often whether a name has become free.
  static constexpr std::chrono::milliseconds kNameRetry{500};

  // How long asking for this is pointless; zero: try.
  std::chrono::milliseconds Pause(const api::HorovodJob& job, Needed what,
                                  Clock::time_point now) const;
  // An `error` that people don't have to see to is none of these problems.
  void Failed(const api::HorovodJob& job, Needed what, const kube::Error& error,
              Clock::time_point now);
  // The name belongs to a pod that is ending, most likely of an earlier job of this name.
  void NameIsTaken(const api::HorovodJob& job, const std::string& pod, Clock::time_point now);
  void Worked(const api::HorovodJob& job, Needed what);
  void Forget(const std::string& job_uid);

  // What `status` says of it: condition Created, or Degraded where the job has trained before.
  void Show(const api::HorovodJob& job, bool has_pods, const std::string& now,
            api::Status* status) const;

 private:
  struct Problem {
    std::string reason;   // of the condition
    std::string message;  // for people
    std::int64_t generation = 0;
    int failures = 0;  // in a row
    Clock::time_point retry_at;
  };

  const runtime::WorkQueueOptions backoff_;
  mutable sync::Mutex mu_;
  std::map<std::pair<std::string, Needed>, Problem> problems_ GUARDED_BY(mu_);  // by job uid
};

// Nothing can be made in this namespace any more, and nothing needs to be: it is being deleted.
bool NamespaceGoes(const kube::Error& error);

}  // namespace ringmaster::controllers
