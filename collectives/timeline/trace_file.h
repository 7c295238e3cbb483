// The file of a timeline: a JSON array of trace events (trace_text.h). It is written as it goes;
// where its end is missing because the process died, Chrome and Perfetto read what is there.
//
// Thread rule: one thread at a time.
#pragma once

#include <optional>
#include <string>

#include "collectives/timeline/event.h"
#include "collectives/timeline/trace_text.h"
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
  TraceFile() = default;
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // RM_ERR_INVALID says why there can be no such file. With `fresh` a file that exists is left as
  // it is: RM_ERR_UNAVAILABLE.
  Status Open(const std::string& path, bool fresh, const Process& process);
  void Write(const Event& event);
  void WriteDropped(size_t count, Clock::time_point now);
  void Flush();
  // RM_ERR_INTERNAL: not all of it could be written (a full disk, say).
  Status Close();
  // Closes the file as it is, without what is left to write.
  void Discard();
  // Constant after Open().
  const std::string& path() const { return path_; }

 private:
  bool CloseDescriptor();

  // Not a FILE of the C library: a forked child would write once more what is in its buffer.
  int fd_ = -1;
  std::string buffer_;
  bool failed_ = false;
  std::string path_;
  std::optional<TraceText> text_;  // has a value after Open()
};

}  // namespace ringmaster::timeline
