#include "collectives/timeline/timeline.h"

#include "collectives/timeline/trace_opening.h"

namespace ringmaster::timeline {
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
  if (writer_ != nullptr)
    return {RM_ERR_INVALID, "a timeline is being recorded already: stop it first"};
  std::unique_ptr<TraceFile> file;
  if (Status opened = OpenTrace(path, later, process, Clock::now() + opening_, &file); !opened.ok())
    return opened;
  if (needs_queue_) {
    queues_.push_back(std::make_shared<EventQueue>(kQueuedEvents));
    queue_.store(queues_.back().get(), std::memory_order_release);
    needs_queue_ = false;
  }
  queues_.back()->Pop([](const Event&) {});  // drops what came after the last one was stopped
  (void)queues_.back()->TakeDropped();
  number_.fetch_add(1, std::memory_order_relaxed);
  on_.store(true, std::memory_order_release);
  writer_ = std::make_unique<TraceWriter>(queues_.back(), std::move(file));
  return {};
}

Status Timeline::Stop(Clock::time_point deadline) {
  sync::MutexLock lock(&mu_);
  if (writer_ == nullptr) return {};
  on_.store(false, std::memory_order_release);
  Status closed = writer_->Stop(deadline, &needs_queue_);
  writer_.reset();
  return closed;
}

}  // namespace ringmaster::timeline
