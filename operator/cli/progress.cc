#include "operator/cli/progress.h"

#include <algorithm>

#include "operator/api/exit_code.h"

namespace ringmaster::cli {

void JobProgress::Observe(const inspection::SidecarStatus& status, TimePoint now) {
  sidecars_[status.pod] = status;
  steps_.Observe(status);
  for (const job::WorkerExit& exit : status.exits) NoteExit(status.pod, exit.exit_code);
  views_.Observe(status, now);

  // Values are for people: those from the sidecar of rank 0, else from the first sidecar that has
  // any.
  bool has_rank0 = std::any_of(status.workers.begin(), status.workers.end(),
                               [](auto& worker) { return worker.rank == 0; });
  for (const auto& [name, value] : status.values)
    if (has_rank0 || !values_.count(name)) values_[name] = value;

  double sum = 0;
  for (const auto& [pod, sidecar] : sidecars_) sum += sidecar.samples_per_second;
  samples_per_second_ = sum;
}

void JobProgress::NoteExit(const std::string& pod, int code) {
  const auto signal = api::SignalOfExit(code);
  ends_[pod] = signal ? "killed by signal " + std::to_string(*signal)
                      : "exited with code " + std::to_string(code);
}

void JobProgress::Forget(const std::string& pod) { sidecars_.erase(pod); }

std::string JobProgress::HowEnded(const std::string& pod) const {
  auto found = ends_.find(pod);
  return found == ends_.end() ? "" : found->second;
}

std::string JobProgress::state() const {
  const inspection::SidecarStatus* best = nullptr;
  for (const auto& [pod, sidecar] : sidecars_) {
    if (!best || sidecar.epoch > best->epoch ||
        (sidecar.epoch == best->epoch && sidecar.coordinator))
      best = &sidecar;
  }
  return best ? best->state : "";
}

}  // namespace ringmaster::cli
