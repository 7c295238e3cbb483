// Why the pods of a job can't be made, as the API server says, and when it is worth another try: a
// template that it calls wrong stays wrong until somebody changes it.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

class CreationProblems {
 public:
  using Clock = std::chrono::steady_clock;

  struct Problem {
    std::string reason;   // of the condition
    std::string message;  // for people
    std::int64_t generation = 0;
    Clock::time_point retry_at;
  };

  // A wrong template is tried again this often: what refused it may have been an admission webhook.
  static constexpr std::chrono::minutes kRetry{5};
  // And so often whether a name has become free.
  static constexpr std::chrono::milliseconds kNameRetry{500};

  // How long creating pods for this job is pointless; zero: try.
  std::chrono::milliseconds Pause(const api::HorovodJob& job, Clock::time_point now) const;
  // True if `error` is one that people have to see to.
  bool Failed(const api::HorovodJob& job, const kube::Error& error, Clock::time_point now);
  // The name belongs to a pod that is ending, most likely of an earlier job of this name.
  void NameIsTaken(const api::HorovodJob& job, const std::string& pod, Clock::time_point now);
  void Worked(const api::HorovodJob& job);
  void Forget(const std::string& job_uid);

  // What `status` says of it: condition Created.
  void Show(const api::HorovodJob& job, bool has_pods, const std::string& now,
            api::Status* status) const;

 private:
  mutable std::mutex mu_;
  std::map<std::string, Problem> problems_;  // by job uid; guarded by mu_
};

}  // namespace ringmaster::controllers
