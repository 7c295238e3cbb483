// The file of a timeline: a JSON array of Chrome's trace events, times in microseconds since 1970.
// It is written as it goes; where its end is missing because the process died, Chrome and Perfetto
// read what is there.
//
// Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>

#include "collectives/timeline/event.h"
#include "ringmaster/status.h"

namespace ringmaster::timeline {

// Whose timeline it is.
struct Process {
  int rank = 0;
  std::string worker;
  std::string job;  // uid
};

class TraceFile {
 public:
  TraceFile();
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // RM_ERR_INVALID says why there can be no such file. `fresh`: one that is there is left as it is.
  Status Open(const std::string& path, bool fresh, const Process& process);
  void Write(const Event& event);
  void WriteDropped(size_t count, Clock::time_point now);
  void Flush();
  // RM_ERR_INTERNAL: not all of it could be written (a full disk, say).
  Status Close();

 private:
  // Each name has a row of its own, up to so many: a script that makes up names has no end of them.
  static constexpr size_t kMostTensorRows = 1000;

  // The row's number; introduces it first if it is new.
  int RowOf(const Event& event);
  void Introduce(const char* key, int row, const std::string& name);
  double Microseconds(Clock::time_point at) const;
  void Put(const std::string& text) { buffer_ += text; }

  const Clock::time_point steady_;  // the same moment by two clocks
  const std::chrono::system_clock::time_point wall_;
  // Not the C library's FILE: a forked child would write what is in its buffer once more.
  int fd_ = -1;
  std::string buffer_;
  bool failed_ = false;
  std::string path_;
  int rank_ = 0;
  std::unordered_map<std::string, int> rows_;  // of tensors, by name
};

}  // namespace ringmaster::timeline
