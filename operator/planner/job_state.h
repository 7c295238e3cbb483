// What the phases before the fifth find out about the job as a whole; those after it only read it.
//
// Plain values.
#pragma once

#include <string>

namespace ringmaster::planner {

struct Outcome {
  bool succeeded = false;
  bool failed = false;
  std::string reason;
  std::string message;
  bool ended() const { return succeeded || failed; }
};

struct JobState {
  Outcome outcome;
  bool suspended = false;  // no pod of it is to be there now
  bool outdated = false;   // it has been suspended and changed unseen: pods of before still run
  bool queued = false;     // its queue has not admitted it
  bool gives_all = false;  // it makes way for a more important job
  bool finishing = false;  // all ranks agreed to end: nothing is rebuilt
  std::string last_fault;  // of the application, of those that are counted just now
  int wanted = 0;          // pods
};

}  // namespace ringmaster::planner
