// When to ask again for what could not be made: CreationProblems with the clock, the queue and the
// events that it needs in a running controller.
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

  // True: it is too early to ask for this again, and the job comes back when it is time.
  bool Waits(const api::HorovodJob& job, Needed what);
  // The same, and nobody is called.
  bool IsPaused(const api::HorovodJob& job, Needed what) const;
  // Pods can't be made, or let start.
  bool PodsArePaused(const api::HorovodJob& job) const {
    return IsPaused(job, Needed::kPods) || IsPaused(job, Needed::kGates);
  }
  void Failed(const api::HorovodJob& job, Needed what, const kube::Error& error);
  // The same, and `event` tells people.
  void Failed(const api::HorovodJob& job, Needed what, const kube::Error& error,
              const planner::Event& event);
  // Another pod has the name and is ending: no event, as that passes by itself.
  void NameIsTaken(const api::HorovodJob& job, const std::string& pod);
  void Worked(const api::HorovodJob& job, Needed what) { problems_.Worked(job, what); }
  void Forget(const std::string& job_uid) { problems_.Forget(job_uid); }
  // What `status` says of it: condition Created.
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
