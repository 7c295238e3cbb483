#include "operator/cli/grouped_output.h"

namespace ringmaster::cli {

void GroupedOutput::Line(std::size_t source, const std::string& prefix, std::string_view line) {
  const sync::MutexLock lock(&mu_);
  while (source != front_ && kept_[source].text.size() >= most_kept_) turned_.Wait(&mu_);
  std::string& text = kept_[source].text;
  text.append(prefix).append(line).push_back('\n');
  if (source == front_) WriteKept();
}

void GroupedOutput::End(std::size_t source) {
  const sync::MutexLock lock(&mu_);
  kept_[source].ended = true;
  while (true) {
    const auto at = kept_.find(front_);
    if (at == kept_.end() || !at->second.ended) break;
    WriteKept();
    kept_.erase(at);
    ++front_;
  }
  if (kept_.count(front_) > 0) WriteKept();
  turned_.NotifyAll();
}

void GroupedOutput::WriteKept() {
  std::string& text = kept_[front_].text;
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
  text.clear();
}

}  // namespace ringmaster::cli
