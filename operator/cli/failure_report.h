// What a failed job says first: which worker, which exception. Read from the log of the pod that
// the job's condition names; then the rest, each thing once. Pure.
#pragma once

#include <deque>
#include <string>
#include <vector>

namespace ringmaster::cli {

struct FailedPod {
  std::string name;       // empty: no pod is known to have failed
  int first_number = 0;   // of its workers, which keep their numbers while their ranks may change
  bool labelled = false;  // its log has the worker's number in front of each line
  bool shown = false;     // what its workers printed has been shown already
  bool had_view = true;   // its job: all workers have been in init()
};

// `why`: the condition's message. `log`: the newest lines of the pod's log. The first line says
// which worker, by the number that stands in front of its lines, the second which exception or
// signal; where no worker has failed the first says why
// and no second follows.
std::vector<std::string> FailureReport(const std::string& job, const std::string& why,
                                       const FailedPod& pod, const std::deque<std::string>& log);

// "SIGSEGV (signal 11, segmentation fault)"
std::string SignalText(int signal);

}  // namespace ringmaster::cli
