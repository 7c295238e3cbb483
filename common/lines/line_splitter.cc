#include "common/lines/line_splitter.h"

namespace ringmaster::lines {
namespace {

constexpr std::chrono::seconds kBetweenStates{1};

}  // namespace

void LineSplitter::Feed(std::string_view text, TimePoint now) {
  for (const char c : text) Take(c, now);
}

void LineSplitter::Take(char c, TimePoint now) {
  if (c == '\n') {  // after a '\r' it ends the same line
    overwrites_ = false;
    shown_.reset();
    return Emit();
  }
  if (overwrites_) Overwrite(now);
  overwrites_ = c == '\r';
  if (overwrites_) return;
  line_ += c;
  if (line_.size() >= longest_) Emit();
}

void LineSplitter::Finish() {
  if (!line_.empty()) Emit();
}

void LineSplitter::Emit() {
  on_line_(line_);
  line_.clear();
}

void LineSplitter::Overwrite(TimePoint now) {
  if (line_.empty()) return;
  if (shown_ && now - *shown_ < kBetweenStates) return line_.clear();
  shown_ = now;
  Emit();
}

}  // namespace ringmaster::lines
