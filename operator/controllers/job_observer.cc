#include "operator/controllers/job_observer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "operator/api/labels.h"
#include "operator/controllers/pod_record.h"

namespace ringmaster::controllers {

using kube::Json;

JobObserver::JobObserver(std::shared_ptr<kube::KubeApi> api, const Sources& sources,
                         runtime::WorkQueue* queue, JobObserverOptions options)
    : api_(std::move(api)),
      from_(sources),
      queue_(queue),
      options_(std::move(options)),
      preparation_(api_, options_.preparation_patience) {}

kube::Result<planner::Snapshot> JobObserver::Observe(const api::HorovodJob& job) {
  planner::Snapshot snapshot;
  snapshot.job = job;
  snapshot.now = options_.clock.wall();
  // Sidecars are read before pods, so that the cache has had time to see the pod of each connected
  // sidecar.
  JobFacts facts = from_.registry->Facts(job.uid);
  snapshot.sidecars = std::move(facts.sidecars);
  snapshot.exits = std::move(facts.exits);
  snapshot.rebuilds = std::move(facts.rebuilds);
  snapshot.view = facts.view;
  snapshot.told_view = facts.told_view;
  snapshot.pods = PodsOf(job, from_.pods->Indexed(job.ns, job.Key()));
  times_.Correct(job.Key(), snapshot.now, &snapshot.pods);
  snapshot.disruption_taints = options_.disruption_taints;
  snapshot.nodes =
      from_.nodes->Observe(&snapshot.pods, job.spec.run_policy.scheduling_policy.topology.label);
  const auto look_again =
      preparation_.Explain(job.Key(), job.ns, &snapshot.pods, options_.clock.steady());
  if (look_again) queue_->AddAfter(job.Key(), *look_again);
  if (auto read = ReadRecord(&snapshot); !read) return tl::unexpected(read.error());
  snapshot.view_since =
      from_.registry->FirstSeen(job.Key(), job.uid, membership::EpochOf(snapshot.view));
  // A job that is being suspended has no start time any more.
  const bool begun = !job.status.start_time.empty() || job.status.epoch != 0;
  snapshot.taken_over = from_.registry->TakenOver(job.Key(), job.uid, begun);
  return snapshot;
}

kube::Result<void> JobObserver::ReadRecord(planner::Snapshot* snapshot) {
  const api::HorovodJob& job = snapshot->job;
  const auto recorded = from_.records->Newest({job.ns, job.name, job.uid});
  if (!recorded) return tl::unexpected(recorded.error());
  if (!*recorded) return {};
  const membership::QuorumRecord& record = **recorded;
  snapshot->lineage =
      std::max(record.lineage, membership::EpochLineage(membership::EpochOf(record.view)));
  if (membership::EpochOf(record.view) > membership::EpochOf(snapshot->view)) {
    snapshot->view = record.view;
  }
  return {};
}

kube::Result<planner::Snapshot> JobObserver::WithListedPods(const planner::Snapshot& snapshot) {
  const api::HorovodJob& job = snapshot.job;
  const auto listed = api_->ListAll(
      kube::Pods(), job.ns, {.label_selector = fmt::format("{}={}", api::kJobUidLabel, job.uid)});
  if (!listed) return tl::unexpected(listed.error());
  planner::Snapshot fresh = snapshot;
  fresh.pods = PodsOf(job, listed->items);
  times_.Correct(job.Key(), fresh.now, &fresh.pods);
  fresh.nodes =
      from_.nodes->Observe(&fresh.pods, job.spec.run_policy.scheduling_policy.topology.label);
  return fresh;
}

}  // namespace ringmaster::controllers
