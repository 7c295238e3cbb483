#include "operator/controllers/event_writer.h"

namespace ringmaster::controllers {

using runtime::MetaField;

void EventWriter::EmitEvent(const api::HorovodJob& job, const planner::Event& event) {
  runtime::ObjectReference regarding = {api::kApiVersion, api::kKind, job.ns,
                                        job.name,         job.uid,    job.resource_version};
  const auto pod = event.pod.empty() ? nullptr : pods_->Get(job.ns, event.pod);
  if (pod != nullptr) {
    regarding = {
        "v1", "Pod", job.ns, event.pod, MetaField(*pod, "uid"), MetaField(*pod, "resourceVersion")};
  }
  recorder_.Record(regarding, event.warning, event.reason, "Reconcile", event.message);
}

}  // namespace ringmaster::controllers
