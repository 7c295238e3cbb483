// Writes the events of a queue to a file, ten times a second, on a thread of its own.
//
// A file system that hangs holds that thread up for as long as it likes. Stop() then gives the file
// up: the thread keeps the queue and the file, and ends if the file system ever answers.
//
// Owner: Timeline. Thread rule: one thread at a time.
#pragma once

#include <memory>
#include <thread>

#include "collectives/timeline/event_queue.h"
#include "collectives/timeline/trace_file.h"
#include "common/sync/mutex.h"
#include "ringmaster/status.h"

namespace ringmaster::timeline {

class TraceWriter {
 public:
  // `file` is open.
  TraceWriter(std::shared_ptr<EventQueue> queue, std::unique_ptr<TraceFile> file);
  // Stop() has returned.
  ~TraceWriter() = default;

  // Writes what is left and closes the file. RM_ERR_INTERNAL: not all of it could be written, or
  // not until the deadline. In the second case *gave_up is true, and the queue must not be used any
  // more.
  Status Stop(Clock::time_point deadline, bool* gave_up);

 private:
  // What the thread uses, which may outlive the writer.
  struct Shared {
    const std::shared_ptr<EventQueue> queue;
    const std::unique_ptr<TraceFile> file;  // used by the thread alone, but for path()
    sync::Mutex mu;
    sync::CondVar changed;
    bool stopping GUARDED_BY(mu) = false;
    bool ended GUARDED_BY(mu) = false;
    Status closed GUARDED_BY(mu);  // if it has ended
  };

  static void Write(Shared* shared);
  // Returns true at the last time.
  static bool Pause(Shared* shared);

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace ringmaster::timeline
