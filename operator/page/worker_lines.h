// The last lines that one worker has printed, out of the log of a pod that has several: the
// launcher puts the worker's number in front of each of its lines.
//
// Thread rule: one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "common/lines/line_splitter.h"

namespace ringmaster::page {

class WorkerLines {
 public:
  // At most so many lines and bytes are kept.
  WorkerLines(int worker, std::size_t most_lines, std::size_t most_bytes);

  void Feed(std::string_view text);
  // Call once, when no more text comes.
  std::string Finish();
  // Whether lines that were among the last ones had to go because of their bytes.
  bool cut() const { return cut_; }

 private:
  void OnLine(std::string_view line);

  const std::string label_;
  const std::size_t most_lines_, most_bytes_;
  std::deque<std::string> kept_;
  std::size_t bytes_ = 0;  // of what is kept, with the line ends
  bool cut_ = false;
  lines::LineSplitter splitter_{[this](std::string_view line) { OnLine(line); },
                                lines::LineSplitter::kLongestLabelled};
};

}  // namespace ringmaster::page
