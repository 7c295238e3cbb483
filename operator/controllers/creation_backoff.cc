#include "operator/controllers/creation_backoff.h"

namespace ringmaster::controllers {

bool CreationBackoff::Waits(const api::HorovodJob& job, Needed what) {
  const auto pause = problems_.Pause(job, what, clock_.steady());
  if (pause.count() > 0) queue_->AddAfter(job.Key(), pause);
  return pause.count() > 0;
}

bool CreationBackoff::IsPaused(const api::HorovodJob& job, Needed what) const {
  return problems_.Pause(job, what, clock_.steady()).count() > 0;
}

void CreationBackoff::Failed(const api::HorovodJob& job, Needed what, const kube::Error& error) {
  problems_.Failed(job, what, error, clock_.steady());
}

void CreationBackoff::FailedWithEvent(const api::HorovodJob& job, Needed what,
                                      const kube::Error& error, const std::string& reason,
                                      const std::string& pod) {
  Failed(job, what, error);
  // An event can't be written either in a namespace that is being deleted.
  if (!NamespaceGoes(error)) events_->EmitEvent(job, {true, reason, ProblemText(what, error), pod});
}

void CreationBackoff::NameIsTaken(const api::HorovodJob& job, Needed what, const std::string& pod) {
  problems_.NameIsTaken(job, what, pod, clock_.steady());
}

}  // namespace ringmaster::controllers
