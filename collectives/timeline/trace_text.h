// Events as Chrome's trace events: JSON texts, each after a comma and on a line of its own, with
// times in microseconds since 1970.
//
// Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>

#include "collectives/timeline/event.h"

namespace ringmaster::timeline {

class TraceText {
 public:
  // `process`: the number by which the picture tells this worker from others (`pid`).
  explicit TraceText(int process);

  // The names of the rows that are always there.
  std::string Rows() const;
  // The event, and before it the name of its row where that is new.
  std::string Of(const Event& event);

  // A JSON string. What isn't UTF-8 is replaced.
  static std::string Quoted(const std::string& text);

 private:
  // The most tensors that get a row of their own: a script may make up ever new names.
  static constexpr size_t kMostTensorRows = 1000;

  // The number of the event's row. If the row is new, its introduction is added to *out.
  int RowOf(const Event& event, std::string* out);
  std::string Introduction(int row, const std::string& name) const;
  std::string Times(const Event& event) const;

  const int process_;
  const Clock::time_point steady_;  // the same moment by two clocks
  const std::chrono::system_clock::time_point wall_;
  std::unordered_map<std::string, int> rows_;  // of tensors, by name
};

}  // namespace ringmaster::timeline
