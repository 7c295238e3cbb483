#include "operator/kueue/queue_state.h"

#include <fmt/format.h>

namespace ringmaster::kueue {
namespace {

QueueState Of(const api::HorovodJob& job, Stage stage, const char* reason,
              const std::string& message) {
  return {.queue = job.queue,
          .stage = stage,
          .reason = reason,
          .message = fmt::format("queue {}: {}", job.queue, message)};
}

QueueState Waits(const api::HorovodJob& job, const WorkloadFacts& workload) {
  std::string message = workload.message;
  if (!workload.active) {
    message = fmt::format("Workload {} is deactivated (spec.active is false)", workload.name);
  } else if (message.empty()) {
    message = workload.quota_reserved ? "quota is reserved, and the admission is on its way"
                                      : "Kueue has not looked at the job yet";
  }
  return Of(job, Stage::kWaits, kWaitingForQueue, message);
}

// Why the job can't use an existing admission; empty if it can.
std::string WhyNoUse(const api::HorovodJob& job, const WorkloadFacts& workload) {
  if (workload.queue != job.queue) {
    return fmt::format("the admission is of queue {}; it is given back", workload.queue);
  }
  if (workload.Granted() < job.LeastPods()) {
    return fmt::format("{} pods are admitted, and the job needs {}; the admission is given back",
                       workload.Granted(), job.LeastPods());
  }
  return "";
}

QueueState Admitted(const api::HorovodJob& job, const WorkloadFacts& workload) {
  if (const std::string why = WhyNoUse(job, workload); !why.empty()) {
    return Of(job, Stage::kLeaves, kWaitingForQueue, why);
  }
  if (workload.has_topology) {
    return UnusableAdmission(
        job, fmt::format("Kueue has chosen nodes for the pods by the topology of a flavour (one of "
                         "{}), which is not supported: use flavours without topologyName",
                         fmt::join(workload.flavors, ", ")));
  }
  const int pods = workload.Granted();
  QueueState state = Of(job, Stage::kAdmitted, "",
                        fmt::format("{} of {} pods are admitted by ClusterQueue {}", pods,
                                    job.WantedPods(), workload.cluster_queue));
  state.pods = pods;
  return state;
}

}  // namespace

bool GivesUpAdmission(const api::HorovodJob& job) {
  const api::Condition* suspended = job.status.Find("Suspended");
  return suspended != nullptr && suspended->status &&
         (suspended->reason == "Suspended" || suspended->reason == kAdmissionGivenBack);
}

QueueState LeavesQueue(const WorkloadFacts& workload) {
  return {.queue = workload.queue,
          .stage = Stage::kLeaves,
          .reason = kAdmissionGivenBack,
          .message = fmt::format("queue {}: the job names no queue any more; its pods leave, and "
                                 "the admission is given back",
                                 workload.queue)};
}

QueueState QueueStateOf(const api::HorovodJob& job, const WorkloadFacts* workload) {
  if (workload == nullptr || workload->deleting || workload->finished) {
    return Of(job, Stage::kLeaves, kWaitingForQueue, "the job has no Workload in it yet");
  }
  if (workload->quota_reserved && GivesUpAdmission(job)) {
    return Of(job, Stage::kWaits, kAdmissionGivenBack,
              "the job was suspended, or named no queue, and gives back what was admitted before; "
              "the next admission follows when its pods have gone");
  }
  if (workload->evicted && workload->quota_reserved) {
    QueueState state = Of(job, Stage::kLeaves, kEvictedByQueue, workload->eviction);
    state.evicted_at = workload->evicted_at;
    return state;
  }
  if (!workload->quota_reserved || !workload->admitted) return Waits(job, *workload);
  if (!workload->active) {
    return Of(job, Stage::kLeaves, kEvictedByQueue,
              fmt::format("Workload {} is deactivated (spec.active is false)", workload->name));
  }
  return Admitted(job, *workload);
}

QueueState WaitsForEarlier(const api::HorovodJob& job, const std::string& workload) {
  return Of(job, Stage::kWaits, kWaitingForQueue,
            fmt::format("Workload {} of an earlier job of this name is about to go", workload));
}

QueueState UnknownQueueState(const api::HorovodJob& job, const std::string& why) {
  return Of(job, Stage::kUnknown, kQueueUnavailable, why);
}

QueueState UnusableAdmission(const api::HorovodJob& job, const std::string& why) {
  return Of(job, Stage::kWaits, kAdmissionUnusable, why);
}

}  // namespace ringmaster::kueue
