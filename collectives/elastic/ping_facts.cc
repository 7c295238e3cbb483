#include "collectives/elastic/ping_facts.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/worker_link/worker_frames.h"

namespace ringmaster::elastic {
namespace {

constexpr size_t kMostNames = 64;

}  // namespace

void PingFacts::Report(const std::string& name, double value) {
  sync::MutexLock lock(&mu_);
  if (values_.size() < kMostNames || values_.contains(name)) values_[name] = value;
}

void PingFacts::SetStalls(const std::vector<job::Stall>& stalls, bool came,
                          const std::vector<std::string>& workers) {
  std::vector<job::Stall> before;
  {
    sync::MutexLock lock(&mu_);
    before = std::exchange(stalls_, stalls);
    stalls_at_ = Clock::now();
  }
  for (job::Stall stall : stalls) {
    for (int rank : stall.missing) stall.pods.push_back(workers.at(static_cast<size_t>(rank)));
    std::fprintf(stderr, "ringmaster: waits for %lld s: %s\n",
                 static_cast<long long>(stall.waited_ms / 1000), job::Describe(stall).c_str());
  }
  if (stalls.empty() && !before.empty() && came) {
    std::fprintf(stderr, "ringmaster: the wait for '%s' is over\n", before.front().tensor.c_str());
  }
}

std::vector<job::Stall> PingFacts::StallsNow() const {
  std::vector<job::Stall> stalls = stalls_;
  const auto since = (Clock::now() - stalls_at_) / std::chrono::milliseconds(1);
  for (job::Stall& stall : stalls) stall.waited_ms += since;
  return stalls;
}

void PingFacts::SayGpuAgain() {
  sync::MutexLock lock(&mu_);
  told_gpu_ = 0;
}

nlohmann::json PingFacts::Fields(const engine::EngineInfo& engine) {
  sync::MutexLock lock(&mu_);
  return worker_link::PingFields({.epoch = engine.membership().epoch,
                                  .step = engine.step.load(),
                                  .ran = engine.ran_epoch.load(),
                                  .holds = engine.held_epoch.load(),
                                  .busy = engine.busy.load(),
                                  .times = engine.work.At(Clock::now()),
                                  .values = values_,
                                  .stalls = StallsNow(),
                                  .gpu = gpu_->News(&told_gpu_)});
}

}  // namespace ringmaster::elastic
