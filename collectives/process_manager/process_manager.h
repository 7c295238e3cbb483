// What has started this process beside others like it, where Ringmaster has not: mpirun, mpiexec,
// srun. It numbers the processes, and hands each what the others say.
//
// Thread rule: one thread.
#pragma once

#include <chrono>
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

// The one that this process's environment names; null: none does, or it has started no other
// process. RM_ERR_UNAVAILABLE: it can't be
// reached, and why.
Status Find(std::unique_ptr<ProcessManager>* out);

}  // namespace ringmaster::process_manager
