// Decides when to retry the creation of what could not be created: CreationProblems together with
// the clock, queue and events of a running controller.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <string>
#include <utility>

#include "operator/controllers/creation_problems.h"
#include "operator/controllers/event_writer.h"
#include "operator/runtime/clock.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

class CreationBackoff {
 public:
  // `queue` and `events` outlive it.
  CreationBackoff(runtime::WorkQueueOptions options, runtime::WorkQueue* queue, EventWriter* events,
                  runtime::Clock clock = {})
      : problems_(options), queue_(queue), events_(events), clock_(std::move(clock)) {}

  // Returns true if it is too early for another try; the job then comes back when it is time.
  bool Waits(const api::HorovodJob& job, Needed what);
  // Like Waits, but without putting the job into the queue.
  bool IsPaused(const api::HorovodJob& job, Needed what) const;
  // Pods can't be created, the API server has said when it was asked or in a dry run.
  bool PodsArePaused(const api::HorovodJob& job) const {
    return IsPaused(job, Needed::kPods) || IsPaused(job, Needed::kDryRun);
  }
  // Like the above; the job then comes back when it is time.
  bool PodsWait(const api::HorovodJob& job) {
    const bool pods = Waits(job, Needed::kPods), dry_run = Waits(job, Needed::kDryRun);
    return pods || dry_run;
  }
  // Pods were refused lately, and were not all created since.
  bool PodsWereRefused(const api::HorovodJob& job) const {
    return problems_.WasRefused(job, Needed::kPods, clock_.steady());
  }
  void Failed(const api::HorovodJob& job, Needed what, const kube::Error& error);
  // Like the above, and emits an event of this reason with the condition's text; `pod` is the one
  // that it is about, if it exists.
  void FailedWithEvent(const api::HorovodJob& job, Needed what, const kube::Error& error,
                       const std::string& reason, const std::string& pod = "");
  // A pod that is being deleted still has the name. There is no event, because this passes by
  // itself.
  void NameIsTaken(const api::HorovodJob& job, Needed what, const std::string& pod);
  void Worked(const api::HorovodJob& job, Needed what) { problems_.Worked(job, what); }
  void DryRunWorked(const api::HorovodJob& job) { problems_.DryRunWorked(job, clock_.steady()); }
  // No further pod is wanted.
  void PodsAreThere(const api::HorovodJob& job) {
    Worked(job, Needed::kPods);
    Worked(job, Needed::kDryRun);
  }
  void Forget(const std::string& job_uid) { problems_.Forget(job_uid); }
  // Sets the condition Created of `status`.
  void Show(const api::HorovodJob& job, bool has_pods, const std::string& now,
            api::Status* status) const {
    problems_.Show(job, has_pods, now, status);
  }

 private:
  CreationProblems problems_;
  runtime::WorkQueue* const queue_;
  EventWriter* const events_;
  const runtime::Clock clock_;
};

}  // namespace ringmaster::controllers
