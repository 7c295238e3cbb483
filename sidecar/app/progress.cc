#include "sidecar/app/progress.h"

#include <algorithm>
#include <chrono>

namespace ringmaster::app {
namespace {

constexpr std::chrono::seconds kSampleWindow{5};  // samples/s are taken over it
constexpr std::chrono::milliseconds kBetweenSamples{200};

}  // namespace

void Progress::Remember(const std::vector<WorkerProcess>& workers) {
  for (const WorkerProcess& worker : workers) {
    if (worker.standby()) continue;
    highest_step_ = std::max(highest_step_, worker.figures.step());
    for (const auto& [name, value] : worker.figures.values()) last_values_[name] = value;
  }
}

uint64_t Progress::Step(const std::vector<WorkerProcess>& workers) const {
  uint64_t step = highest_step_;
  for (const WorkerProcess& worker : workers) step = std::max(step, worker.figures.step());
  return step;
}

std::map<std::string, double> Progress::Values(const std::vector<WorkerProcess>& workers) const {
  std::map<std::string, double> values;
  for (const WorkerProcess& worker : workers)
    values.insert(worker.figures.values().begin(), worker.figures.values().end());
  values.insert(last_values_.begin(), last_values_.end());
  return values;
}

void Progress::Sample(const std::vector<WorkerProcess>& workers, SteadyTime now) {
  double total = 0;
  for (const WorkerProcess& worker : workers) {
    const auto& values = worker.figures.values();
    auto it = values.find("samples");
    if (it != values.end()) total += it->second;
  }
  if (!samples_.empty() && total < samples_.back().second) samples_.clear();  // a worker began anew
  if (samples_.empty() || now - samples_.back().first >= kBetweenSamples)
    samples_.push_back({now, total});
  while (now - samples_.front().first > kSampleWindow) samples_.pop_front();
}

double Progress::SamplesPerSecond() const {
  if (samples_.size() < 2) return 0;
  const double seconds =
      std::chrono::duration<double>(samples_.back().first - samples_.front().first).count();
  return seconds > 0 ? (samples_.back().second - samples_.front().second) / seconds : 0;
}

}  // namespace ringmaster::app
