// Splits a text that comes in pieces, as a program prints it, into whole lines.
//
// A progress bar ends its states with '\r' and draws the next one over it. Each state is a line
// here, but at most one a second: the others are dropped, as a terminal would have overwritten
// them. The last state, which ends with '\n', is never dropped.
//
// Thread rule: one thread. It reads no clock; the caller passes the time.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::lines {

class LineSplitter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using OnLine = std::function<void(std::string_view)>;  // gets the line without its line end

  // A longer line is cut into several.
  static constexpr size_t kLongest = 64 * 1024;
  // For lines that were cut so before, and then got a number in front: they stay whole.
  static constexpr size_t kLongestLabelled = kLongest + 32;

  explicit LineSplitter(OnLine on_line, size_t longest = kLongest)
      : on_line_(std::move(on_line)), longest_(longest) {}

  void Feed(std::string_view text, TimePoint now);
  // Call when no more text comes: what is left without a line end is a line, too.
  void Finish();

 private:
  void Take(char c, TimePoint now);
  void Emit();
  void Overwrite(TimePoint now);

  const OnLine on_line_;
  const size_t longest_;
  std::string line_;
  bool overwrites_ = false;         // the last character was '\r'
  std::optional<TimePoint> shown_;  // when the newest state of a progress bar was handed out
};

}  // namespace ringmaster::lines
