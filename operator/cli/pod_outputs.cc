#include "operator/cli/pod_outputs.h"

#include <algorithm>

#include "common/lines/line_splitter.h"
#include "common/sync/pause.h"
#include "operator/api/horovod_job.h"
#include "operator/cli/pod_log.h"

namespace ringmaster::cli {

using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kBeforeNextStream{
    500};  // before a broken stream is opened again
constexpr std::chrono::milliseconds kLookAtReaders{100};

}  // namespace

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
  readers_[key] = std::jthread([this, ns, pod, uid](std::stop_token stop) {
    Read(stop, ns, pod, uid);
    const sync::MutexLock lock(&mu_);
    --reading_;
    ended_.NotifyAll();
  });
  return true;
}

void PodOutputs::Finish(std::chrono::milliseconds quiet, std::chrono::milliseconds most) {
  {
    auto begun = Clock::now();
    sync::MutexLock lock(&mu_);
    while (reading_ > 0) {
      if (passing_on_ > 0) begun = Clock::now();
      const auto deadline = std::min(std::max(begun, last_text_) + quiet, begun + most);
      if (Clock::now() >= deadline) break;
      (void)ended_.WaitUntil(&mu_, std::min(deadline, Clock::now() + kLookAtReaders));
    }
  }
  readers_.clear();  // requests a stop and joins the threads
}

void PodOutputs::Read(std::stop_token stop, const std::string& ns, const std::string& pod,
                      const std::string& uid) {
  lines::LineSplitter lines([&](std::string_view line) { on_line_(ns, pod, std::string(line)); },
                            lines::LineSplitter::kLongestLabelled);
  // A stream may end before the log does: its connection is cut, or its deadline has come. The next
  // one sends again what was read of those before.
  size_t seen = 0, skip = 0;
  auto on_text = [&](std::string_view text) {
    const size_t old = std::min(skip, text.size());
    skip -= old;
    seen += text.size() - old;
    {
      const sync::MutexLock lock(&mu_);
      last_text_ = Clock::now();
      ++passing_on_;
    }
    lines.Feed(text.substr(old), std::chrono::steady_clock::now());
    const sync::MutexLock lock(&mu_);
    --passing_on_;
    last_text_ = Clock::now();
    return true;
  };
  while (true) {
    (void)api_->PodLog(ns, pod, api::kWorkerContainer, true, on_text, stop);
    if (stop.stop_requested() || !StillRuns(api_.get(), ns, pod, api::kWorkerContainer, uid)) break;
    sync::Pause(stop, kBeforeNextStream);
    // The name may be that of another pod by now.
    if (!StillRuns(api_.get(), ns, pod, api::kWorkerContainer, uid)) break;
    skip = seen;
  }
  lines.Finish();
}

}  // namespace ringmaster::cli
