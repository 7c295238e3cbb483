// The end of a log, as far as so many bytes reach: of what is too long the newest lines are wanted.
//
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster::page {

class LogEnd {
 public:
  explicit LogEnd(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void Feed(std::string_view text);
  // Call once, when no more text comes. Begins with a whole line, if what is left has one.
  std::string Finish();
  // Whether something had to go.
  bool cut() const { return cut_; }

 private:
  void CutTo(std::size_t bytes);

  const std::size_t most_bytes_;
  std::string text_;
  bool cut_ = false;
};

}  // namespace ringmaster::page
