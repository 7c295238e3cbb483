#include "operator/cli/pod_outputs.h"

#include <algorithm>

#include "common/lines/line_splitter.h"
#include "operator/api/horovod_job.h"

namespace ringmaster::cli {

using Clock = std::chrono::steady_clock;

PodOutputs::PodOutputs(std::shared_ptr<kube::KubeApi> api, OnLine on_line)
    : api_(std::move(api)), on_line_(std::move(on_line)) {}

PodOutputs::~PodOutputs() { PodOutputs::Finish({}, {}); }

void PodOutputs::Follow(const std::string& ns, const std::string& pod, const std::string& uid,
                        bool from_now) {
  const std::string key = ns + "/" + pod + "/" + uid;
  if (readers_.count(key)) return;
  {
    const sync::MutexLock lock(&mu_);
    ++reading_;
  }
  readers_[key] = std::jthread([this, ns, pod, from_now](std::stop_token stop) {
    Read(stop, ns, pod, from_now);
    const sync::MutexLock lock(&mu_);
    --reading_;
    ended_.NotifyAll();
  });
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
  readers_.clear();  // asks them to stop, and waits
}

// How many bytes of its log there are now.
size_t PodOutputs::Printed(const std::string& ns, const std::string& pod, std::stop_token stop) {
  size_t bytes = 0;
  auto count = [&](std::string_view text) {
    bytes += text.size();
    return true;
  };
  (void)api_->PodLog(ns, pod, api::kWorkerContainer, false, count, stop);
  return bytes;
}

void PodOutputs::Read(std::stop_token stop, const std::string& ns, const std::string& pod,
                      bool from_now) {
  size_t skip = from_now ? Printed(ns, pod, stop) : 0;
  lines::LineSplitter lines([&](std::string_view line) { on_line_(ns, pod, std::string(line)); });
  auto on_text = [&](std::string_view text) {
    {
      const sync::MutexLock lock(&mu_);
      last_text_ = Clock::now();
    }
    const size_t old = std::min(skip, text.size());
    skip -= old;
    lines.Feed(text.substr(old), std::chrono::steady_clock::now());
    return true;
  };
  (void)api_->PodLog(ns, pod, api::kWorkerContainer, true, on_text, stop);
  lines.Finish();
}

}  // namespace ringmaster::cli
