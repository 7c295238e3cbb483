#include "operator/cli/pod_outputs.h"

#include <algorithm>

#include "common/lines/line_splitter.h"
#include "operator/api/horovod_job.h"

namespace ringmaster::cli {

using Clock = std::chrono::steady_clock;

PodOutputs::PodOutputs(std::shared_ptr<kube::KubeApi> api, OnLine on_line)
    : api_(std::move(api)), on_line_(std::move(on_line)) {}

PodOutputs::~PodOutputs() { PodOutputs::Finish({}, {}); }

bool PodOutputs::Follow(const std::string& ns, const std::string& pod, const std::string& uid) {
  const std::string key = ns + "/" + pod + "/" + uid;
  if (readers_.count(key)) return false;
  {
    const sync::MutexLock lock(&mu_);
    ++reading_;
  }
  readers_[key] = std::jthread([this, ns, pod](std::stop_token stop) {
    Read(stop, ns, pod);
    const sync::MutexLock lock(&mu_);
    --reading_;
    ended_.NotifyAll();
  });
  return true;
}

void PodOutputs::Finish(std::chrono::milliseconds quiet, std::chrono::milliseconds most) {
  {
    const auto begun = Clock::now();
    sync::MutexLock lock(&mu_);
    while (reading_ > 0) {
      const auto deadline = std::min(std::max(begun, last_text_) + quiet, begun + most);
      if (Clock::now() >= deadline) break;
      (void)ended_.WaitUntil(&mu_, deadline);
    }
  }
  readers_.clear();  // requests a stop and joins the threads
}

void PodOutputs::Read(std::stop_token stop, const std::string& ns, const std::string& pod) {
  lines::LineSplitter lines([&](std::string_view line) { on_line_(ns, pod, std::string(line)); },
                            lines::LineSplitter::kLongestLabelled);
  auto on_text = [&](std::string_view text) {
    {
      const sync::MutexLock lock(&mu_);
      last_text_ = Clock::now();
    }
    lines.Feed(text, std::chrono::steady_clock::now());
    return true;
  };
  (void)api_->PodLog(ns, pod, api::kWorkerContainer, true, on_text, stop);
  lines.Finish();
}

}  // namespace ringmaster::cli
