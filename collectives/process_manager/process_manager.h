// What has started this process beside others like it, where Ringmaster has not: mpirun, mpiexec,
// srun. It numbers the processes, and hands each what the others say.
//
// Thread rule: one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ringmaster/status.h"

namespace ringmaster::process_manager {

using Clock = std::chrono::steady_clock;

class ProcessManager {
 public:
  // The process takes its leave: what it said stays known to the others.
  virtual ~ProcessManager() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The same in all processes that were started together, and in no others.
  virtual std::string job() const = 0;
  // All processes call it with the same `name`, and with no name twice. `said`: by rank, what each
  // has handed in as `mine` (up to 500 bytes, any). RM_ERR_TIMEOUT: somebody has not come.
  virtual Status Exchange(const std::string& name, const std::string& mine,
                          Clock::time_point deadline, std::vector<std::string>* said) = 0;
};

// What a launcher has told this process by its environment.
struct Launch {
  enum class Protocol { kNone, kPmix, kPmi1 };
  Protocol protocol = Protocol::kNone;  // none: no launcher, or it has started no other process
  int socket = -1, rank = 0, size = 1;  // of PMI; PMIx's library has its own ways
};
// `lookup`: the value of a variable, "" if it is not set. RM_ERR_INVALID names the variable, its
// value and what is allowed.
Status ReadLaunch(const std::function<std::string(const char*)>& lookup, Launch* out);

// RM_ERR_UNAVAILABLE: the launcher can't be reached, and why. RM_ERR_INVALID: there is none.
Status Open(const Launch& launch, std::unique_ptr<ProcessManager>* out);

}  // namespace ringmaster::process_manager
