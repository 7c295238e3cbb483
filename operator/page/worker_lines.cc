#include "operator/page/worker_lines.h"

#include <chrono>

namespace ringmaster::page {

WorkerLines::WorkerLines(int worker, std::size_t most_lines, std::size_t most_bytes)
    : label_("[" + std::to_string(worker) + "] "),
      most_lines_(most_lines),
      most_bytes_(most_bytes) {}

void WorkerLines::Feed(std::string_view text) {
  splitter_.Feed(text, std::chrono::steady_clock::now());
}

std::string WorkerLines::Finish() {
  splitter_.Finish();
  std::string text;
  for (const std::string& line : kept_) text += line + "\n";
  return text;
}

void WorkerLines::OnLine(std::string_view line) {
  if (!line.starts_with(label_)) return;
  kept_.emplace_back(line);
  bytes_ += line.size() + 1;
  while (kept_.size() > most_lines_ || bytes_ > most_bytes_) {
    cut_ = kept_.size() <= most_lines_;
    bytes_ -= kept_.front().size() + 1;
    kept_.pop_front();
  }
}

}  // namespace ringmaster::page
