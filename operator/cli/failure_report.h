// The first lines of a failed job's report: which worker failed, and with which exception, read
// from the log of the pod that the job's condition names. The rest follows, without repetitions.
// Pure.
#pragma once

#include <deque>
#include <string>
#include <vector>

namespace ringmaster::cli {

struct FailedPod {
  std::string name;       // empty: no pod is known to have failed
  int first_number = 0;   // number of its first worker; numbers don't change, while ranks may
  bool labelled = false;  // each line of its log begins with the worker's number
  bool shown = false;     // its workers' output has been shown already
  bool had_view = true;   // its job has had a view, so all workers have called init()
};

// `why` is the condition's message. `log` has the newest lines of the pod's log. The first line
// names the worker by the number in front of its lines, the second one the exception or signal. If
// no worker has failed, the first line says why the job failed, and there is no second one.
std::vector<std::string> FailureReport(const std::string& job, const std::string& why,
                                       const FailedPod& pod, const std::deque<std::string>& log);

// "SIGSEGV (signal 11, segmentation fault)"
std::string SignalText(int signal);

}  // namespace ringmaster::cli
