#include "operator/cli/pod_outputs.h"

#include <algorithm>
#include <utility>

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
constexpr int kStreamsInVain = 3;  // one after the other, of a log that has ended

}  // namespace

PodOutputs::PodOutputs(std::shared_ptr<kube::KubeApi> api, OnLine on_line)
    : api_(std::move(api)), on_line_(std::move(on_line)) {}

PodOutputs::~PodOutputs() { PodOutputs::Finish({}, {}); }

bool PodOutputs::Follow(const std::string& ns, const std::string& pod, const std::string& uid) {
  const std::string key = ns + "/" + pod + "/" + uid;
  std::vector<std::jthread> ended;  // joined last, without the lock that they may wait for
  const sync::MutexLock lock(&mu_);
  if (finished_ || readers_.count(key)) return false;
  ended = TakeEnded();
  ++reading_;
  readers_[key] = std::jthread([this, key, source = Source{ns, pod, uid}](std::stop_token stop) {
    Read(stop, source);
    const sync::MutexLock done(&mu_);
    --reading_;
    ended_readers_.push_back(key);
    ended_.NotifyAll();
  });
  return true;
}

std::vector<std::jthread> PodOutputs::TakeEnded() {
  std::vector<std::jthread> ended;
  for (const std::string& key : std::exchange(ended_readers_, {})) {
    const auto reader = readers_.find(key);
    if (reader != readers_.end()) ended.push_back(std::exchange(reader->second, {}));
  }
  return ended;
}

void PodOutputs::Finish(std::chrono::milliseconds quiet, std::chrono::milliseconds most) {
  std::map<std::string, std::jthread> readers;
  {
    auto begun = Clock::now();
    sync::MutexLock lock(&mu_);
    while (reading_ > 0 && !given_up_) {
      if (passing_on_ > 0) begun = Clock::now();
      begun = std::max(begun, last_skipped_);
      const auto deadline = std::min(std::max(begun, last_text_) + quiet, begun + most);
      if (Clock::now() >= deadline) break;
      (void)ended_.WaitUntil(&mu_, std::min(deadline, Clock::now() + kLookAtReaders));
    }
    finished_ = true;
    readers = std::exchange(readers_, {});
  }
  for (auto& [key, reader] : readers) reader.request_stop();
  readers.clear();  // joins the threads, which need the lock
}

void PodOutputs::GiveUp() {
  const sync::MutexLock lock(&mu_);
  given_up_ = true;
  ended_.NotifyAll();
}

std::vector<std::string> PodOutputs::TakeCut() {
  const sync::MutexLock lock(&mu_);
  return std::exchange(cut_, {});
}

std::string_view PodOutputs::NoteText(Source* source, std::string_view text) {
  const size_t old = std::min(source->skip, text.size());
  source->skip -= old;
  source->seen += text.size() - old;
  const sync::MutexLock lock(&mu_);
  last_text_ = Clock::now();
  // A stream that is cut at the same place again and again is not waited for.
  if (old > 0 && source->in_vain == 0) last_skipped_ = last_text_;
  ++passing_on_;
  return text.substr(old);
}

void PodOutputs::Read(std::stop_token stop, Source source) {
  lines::LineSplitter lines(
      [&](std::string_view line) { on_line_(source.ns, source.pod, std::string(line)); },
      lines::LineSplitter::kLongestLabelled);
  auto on_text = [&](std::string_view text) {
    lines.Feed(NoteText(&source, text), Clock::now());
    const sync::MutexLock lock(&mu_);
    --passing_on_;
    last_text_ = Clock::now();
    return true;
  };
  // A stream may end before the log does: its connection is cut, as the server does when somebody
  // waits for a line to be taken for long, or its deadline has come. The next one sends again what
  // was read of those before.
  while (true) {
    const size_t before = source.seen;
    const bool whole =
        api_->PodLog(source.ns, source.pod, api::kWorkerContainer, true, on_text, stop).has_value();
    source.in_vain = source.seen > before ? 0 : source.in_vain + 1;
    if (!AwaitNextStream(source, whole, stop)) break;
    source.skip = source.seen;
  }
  lines.Finish();
}

bool PodOutputs::AwaitNextStream(const Source& source, bool whole, const std::stop_token& stop) {
  auto state = [&] {
    return StateOfLog(api_.get(), source.ns, source.pod, api::kWorkerContainer, source.uid);
  };
  if (stop.stop_requested()) return false;
  const LogState now = state();
  if (whole && now != LogState::kGrows) return false;
  bool goes_on =
      now == LogState::kGrows || (now == LogState::kEnded && source.in_vain < kStreamsInVain);
  if (goes_on) {
    sync::Pause(stop, kBeforeNextStream);
    if (stop.stop_requested()) return false;
    goes_on = state() != LogState::kGone;  // the name may be that of another pod by now
  }
  if (!goes_on && !whole && source.seen > 0) {
    const sync::MutexLock lock(&mu_);
    cut_.push_back(source.pod);
  }
  return goes_on;
}

}  // namespace ringmaster::cli
