#include "operator/page/log_end.h"

#include <utility>

namespace ringmaster::page {

void LogEnd::Feed(std::string_view text) {
  text_ += text;
  // Not at once, because each cut moves all that is kept.
  if (text_.size() > most_bytes_ + most_bytes_ / 4) CutTo(most_bytes_);
}

std::string LogEnd::Finish() {
  CutTo(most_bytes_);
  const auto first_end = text_.find('\n');
  if (cut_ && first_end != std::string::npos && first_end + 1 < text_.size())
    text_.erase(0, first_end + 1);
  return std::move(text_);
}

void LogEnd::CutTo(std::size_t bytes) {
  if (text_.size() <= bytes) return;
  text_.erase(0, text_.size() - bytes);
  cut_ = true;
}

}  // namespace ringmaster::page
