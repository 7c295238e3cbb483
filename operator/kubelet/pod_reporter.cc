#include "operator/kubelet/pod_reporter.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "operator/api/time.h"

namespace ringmaster::kubelet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTryAgain{500};
constexpr int kMostConflicts = 5;  // in a row, before it waits

}  // namespace

PodReporter::PodReporter(std::shared_ptr<kube::KubeApi> api, std::string address, bool at_once)
    : api_(std::move(api)), address_(std::move(address)), at_once_(at_once) {}

PodReporter::~PodReporter() { Stop(std::chrono::milliseconds(0)); }

void PodReporter::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

void PodReporter::Report(const PodName& pod, PodView view, bool remove) {
  const State news{pod, std::move(view), remove, false,
                   at_once_ ? Clock::now() + kTryAgain : Clock::time_point()};
  {
    const sync::MutexLock lock(&mu_);
    State& state = states_[pod.uid];
    if (!state.pod.uid.empty() && state.remove == remove && state.view == news.view) return;
    state = news;
  }
  if (at_once_) Settle(news, Tell(news));
  // The thread does what is left.
  const sync::MutexLock lock(&mu_);
  changed_.NotifyAll();
}

void PodReporter::Forget(const std::string& uid) {
  const sync::MutexLock lock(&mu_);
  states_.erase(uid);
  all_told_.NotifyAll();
}

void PodReporter::Stop(std::chrono::milliseconds patience) {
  if (!thread_.joinable()) return;
  {
    const auto deadline = Clock::now() + patience;
    const auto waits = [](const auto& entry) { return !entry.second.told; };
    sync::MutexLock lock(&mu_);
    while (std::any_of(states_.begin(), states_.end(), waits) &&
           all_told_.WaitUntil(&mu_, deadline)) {
    }
  }
  thread_.request_stop();
  thread_.join();
}

void PodReporter::Run(std::stop_token stop) {
  pthread_setname_np(pthread_self(), "pod-reporter");
  while (auto state = TakeDue(stop)) Settle(*state, Tell(*state));
}

std::optional<PodReporter::State> PodReporter::TakeDue(std::stop_token stop) {
  const sync::MutexLock lock(&mu_);
  while (!stop.stop_requested()) {
    const State* first = nullptr;
    for (const auto& [uid, state] : states_) {
      if (!state.told && (first == nullptr || state.not_before < first->not_before)) first = &state;
    }
    if (first == nullptr) {
      changed_.Wait(&mu_, stop);
    } else if (first->not_before <= Clock::now()) {
      return *first;
    } else {
      (void)changed_.WaitUntil(&mu_, stop, first->not_before);
    }
  }
  return std::nullopt;
}

void PodReporter::Settle(const State& state, Outcome outcome) {
  const sync::MutexLock lock(&mu_);
  const auto it = states_.find(state.pod.uid);
  // What was reported meanwhile is told next.
  if (it == states_.end() || it->second.remove != state.remove || it->second.view != state.view) {
    return;
  }
  if (outcome == Outcome::kTryAgain) {
    it->second.not_before = Clock::now() + kTryAgain;
    return;
  }
  it->second.told = true;
  all_told_.NotifyAll();
}

PodReporter::Outcome PodReporter::Tell(const State& state) {
  const Outcome written = WriteStatus(state);
  return written == Outcome::kDone && state.remove ? Remove(state) : written;
}

PodReporter::Outcome PodReporter::WriteStatus(const State& state) {
  for (int attempt = 0; attempt < kMostConflicts; ++attempt) {
    auto live = api_->Get(kube::Pods(), state.pod.ns, state.pod.name);
    if (!live) {
      return live.error().code == kube::ErrorCode::kNotFound ? Outcome::kGone : Outcome::kTryAgain;
    }
    if ((*live)["metadata"]["uid"] != state.pod.uid) return Outcome::kGone;
    Json status = MakeStatus(state.view, (*live)["status"], address_,
                             api::FormatTime(std::chrono::system_clock::now()));
    if (status == (*live)["status"]) return Outcome::kDone;
    (*live)["status"] = std::move(status);
    const auto written = api_->Update(kube::Pods(), state.pod.ns, *live, "status");
    if (written) return Outcome::kDone;
    if (written.error().code != kube::ErrorCode::kConflict) return Outcome::kTryAgain;
  }
  return Outcome::kTryAgain;
}

PodReporter::Outcome PodReporter::Remove(const State& state) {
  kube::DeleteOptions options;
  options.grace_period_seconds = 0;
  options.uid = state.pod.uid;
  const auto removed = api_->Delete(kube::Pods(), state.pod.ns, state.pod.name, options);
  if (removed) return Outcome::kDone;
  // A conflict: the name belongs to another pod by now.
  const bool gone = removed.error().code == kube::ErrorCode::kNotFound ||
                    removed.error().code == kube::ErrorCode::kConflict;
  return gone ? Outcome::kGone : Outcome::kTryAgain;
}

}  // namespace ringmaster::kubelet
