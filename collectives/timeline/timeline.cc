#include "collectives/timeline/timeline.h"

namespace ringmaster::timeline {
namespace {

constexpr std::chrono::milliseconds kPause{100};
constexpr int kMostFilesOfARank = 100;

// "t.json" for rank 2, the third of that rank: "t.rank2-3.json"
std::string PathOf(const std::string& path, int rank, int nth) {
  if (rank == 0 && nth == 1) return path;
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  const bool has_ending =
      dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot > 0;
  const size_t at = has_ending ? dot : path.size();
  return path.substr(0, at) + ".rank" + std::to_string(rank) +
         (nth > 1 ? std::string("-") + std::to_string(nth) : "") + path.substr(at);
}

}  // namespace

Timeline::~Timeline() { (void)Stop(); }

void Timeline::KeepRecent() {
  sync::MutexLock lock(&mu_);
  if (kept_recent_ != nullptr) return;
  kept_recent_ = std::make_unique<RecentEvents>(kRecentEvents);
  number_.fetch_add(1, std::memory_order_relaxed);
  recent_.store(kept_recent_.get(), std::memory_order_release);
}

std::vector<std::string> Timeline::Recent(const RecentRequest& request) const {
  const RecentEvents* const recent = recent_.load(std::memory_order_acquire);
  if (recent == nullptr) return {};
  TraceText text(request.process);
  std::vector<std::string> texts = {text.Rows()};
  size_t bytes = texts.back().size();
  for (const Event& event : recent->Since(Clock::now() - request.span)) {
    if (event.row == Row::kTensor && !request.tensors) continue;
    const std::string more = text.Of(event);
    bytes += more.size();
    if (bytes > request.most_bytes) break;
    if (texts.back().size() + more.size() > kTextBytes) texts.emplace_back();
    texts.back() += more;
  }
  return texts;
}

Status Timeline::Start(const std::string& path, bool later, const Process& process) {
  sync::MutexLock lock(&mu_);
  if (file_ != nullptr)
    return {RM_ERR_INVALID, "a timeline is being recorded already: stop it first"};
  auto file = std::make_unique<TraceFile>();
  Status opened;
  for (int nth = 1; nth <= kMostFilesOfARank; ++nth) {
    opened = file->Open(PathOf(path, process.rank, nth), later, process);
    if (opened.code() != RM_ERR_UNAVAILABLE) break;
  }
  if (!opened.ok()) return {RM_ERR_INVALID, opened.message()};
  if (queue_ == nullptr) queue_ = std::make_unique<EventQueue>(kQueuedEvents);
  queue_->Pop([](const Event&) {});  // what came after the last timeline had stopped
  (void)queue_->TakeDropped();
  file_ = std::move(file);
  number_.fetch_add(1, std::memory_order_relaxed);
  on_.store(true, std::memory_order_release);
  writer_ =
      std::jthread([this, to = file_.get()](std::stop_token stop) { WriteUntilStopped(stop, to); });
  return {};
}

Status Timeline::Stop() {
  sync::MutexLock lock(&mu_);
  if (file_ == nullptr) return {};
  on_.store(false, std::memory_order_release);
  writer_.request_stop();
  writer_.join();
  Status closed = file_->Close();
  file_.reset();
  return closed;
}

void Timeline::WriteUntilStopped(std::stop_token stop, TraceFile* file) {
  sync::Mutex mu;
  sync::StoppableCondVar stopped;
  for (bool last = false; !last;) {
    {
      sync::MutexLock lock(&mu);
      (void)stopped.WaitUntil(&mu, stop, Clock::now() + kPause);
    }
    last = stop.stop_requested();
    queue_->Pop([&](const Event& event) { file->Write(event); });
    if (const size_t dropped = queue_->TakeDropped()) file->WriteDropped(dropped, Clock::now());
    file->Flush();
  }
}

}  // namespace ringmaster::timeline
