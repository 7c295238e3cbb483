#include "operator/controllers/event_writer.h"

#include <utility>

#include "operator/controllers/pod_record.h"

namespace ringmaster::controllers {

EventWriter::EventWriter(std::shared_ptr<kube::KubeApi> api, const std::string& instance,
                         const runtime::Informer* pods, std::function<void()> dropped,
                         std::size_t most_waiting)
    : recorder_(std::move(api), instance), pods_(pods), queue_(most_waiting, std::move(dropped)) {}

void EventWriter::EmitEvent(const api::HorovodJob& job, const planner::Event& event) {
  const runtime::ObjectReference regarding = {api::kApiVersion, api::kKind, job.ns,
                                              job.name,         job.uid,    job.resource_version};
  runtime::ObjectReference related;
  const auto pod = event.pod.empty() ? nullptr : pods_->Get(job.ns, event.pod);
  if (pod != nullptr) {
    const planner::PodFacts& facts = RecordOf(pod).facts;
    related = {"v1", "Pod", job.ns, event.pod, facts.uid, facts.version};
  }
  queue_.Add([this, regarding, related, event] {
    recorder_.Record(regarding, event.warning, event.reason, "Reconcile", event.message, related);
  });
}

}  // namespace ringmaster::controllers
