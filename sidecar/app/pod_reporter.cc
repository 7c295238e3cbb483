#include "sidecar/app/pod_reporter.h"

#include <string>
#include <utility>
#include <vector>

#include "common/logging/log.h"
#include "sidecar/app/stalls.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app {

PodReporter::PodReporter(membership::Pod self, std::chrono::seconds init_timeout, AgentClock clock,
                         PodReporterParts parts)
    : self_(std::move(self)),
      init_timeout_(init_timeout),
      clock_(std::move(clock)),
      parts_(parts) {}

void PodReporter::AfterEvents() {
  parts_.metrics->SetCoordinator(parts_.membership->member().is_coordinator());
  ReportReadiness();
  ReportHealth();
  ReportAllLeave();
}

void PodReporter::Tick() {
  ReportHealth();
  ReportAllLeave();
  ReportStalls();
  ReportGpus();
  parts_.reports->StepAwaited(parts_.table->orders().awaits_boundary(), parts_.orders->connected(),
                              clock_.now());
}

void PodReporter::CheckInitTimeout() {
  if (init_timeout_reported_ || parts_.membership->installed() != nullptr ||
      clock_.now() - started_at_ < init_timeout_)
    return;
  init_timeout_reported_ = true;
  std::string slots;
  for (uint32_t slot : parts_.table->processes().MissingSlots())
    slots += (slots.empty() ? "" : ",") + std::to_string(slot);
  logging::Error("no first view within the init timeout seconds={} slots_without_init={}",
                 init_timeout_.count(), slots.empty() ? "none" : slots);
  parts_.reports->ForgetReadiness();
  ReportReadiness();
}

void PodReporter::ReportHealth() {
  parts_.reports->Health(parts_.membership->member().able() || parts_.departure->finishing(),
                         clock_.now());
}

void PodReporter::ReportAllLeave() {
  parts_.reports->AllLeave(parts_.departure->EverybodyLeaves(), parts_.orders->connected());
}

void PodReporter::ReportStalls() {
  const WorkerProcesses& processes = parts_.table->processes();
  const auto stalls =
      StallsIn(parts_.membership->installed().get(), processes.all(), processes.slots());
  parts_.metrics->SetStalledTensors(CountTensors(stalls));
  if (parts_.orders->connected()) parts_.reports->Stalls(stalls);
}

void PodReporter::ReportGpus() {
  for (const job::GpuHealth& gpu : parts_.table->gpus().All()) parts_.metrics->SetGpu(gpu);
  const std::vector<job::GpuHealth> failing = parts_.table->gpus().Failing();
  if (failing.size() > failing_logged_) {
    for (const job::GpuHealth& gpu : failing)
      logging::Error("gpu fails slot={} gpu={} reason={}", gpu.slot, logging::Value(gpu.gpu),
                     logging::Value(gpu.failing));
    failing_logged_ = failing.size();
  }
  if (parts_.orders->connected()) parts_.reports->FailingGpus(failing);
}

void PodReporter::ReportReadiness() {
  const WorkerProcesses& processes = parts_.table->processes();
  OperatorReports* const reports = parts_.reports;
  if (processes.all().empty() && !reports->readiness_reported() && !init_timeout_reported_) return;
  membership::Candidate candidate{self_, processes.Living()};
  candidate.pod.incarnation = parts_.membership->member().state().incarnation;
  // Only a recovery needs to know who holds the state, and that changes in each view: it is not
  // worth a look of the operator.
  for (membership::Worker& worker : candidate.workers) worker.holds = 0;
  reports->Readiness(candidate, processes.MissingSlots());
}

}  // namespace ringmaster::app
