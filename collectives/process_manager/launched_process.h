// A process manager (mpirun, mpiexec, srun), as seen from one of the processes that it has started
// together: what the process can ask it, whichever protocol it speaks, and what it has told the
// process.
//
// Thread rule: one thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ringmaster/status.h"

namespace ringmaster::process_manager {

using Clock = std::chrono::steady_clock;

class ProcessManager {
 public:
  // The process takes leave of the manager. The others still know what it has handed in.
  virtual ~ProcessManager() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The same in all processes that were started together, and in no others.
  virtual std::string job() const = 0;
  // All processes call it with the same `name`, and with no name twice. `said`: by rank, what each
  // process has handed in as `mine` (up to 500 bytes of any kind). RM_ERR_TIMEOUT: some process has
  // not called it in time.
  virtual Status Exchange(const std::string& name, const std::string& mine,
                          Clock::time_point deadline, std::vector<std::string>* said) = 0;
  // An MPI in this process speaks with the same manager, and takes leave of it for the process, if
  // their protocol knows one leave alone. Nothing more is exchanged.
  virtual void LeaveIsTaken() {}
};

// What a launcher has told this process by its environment.
struct Launch {
  enum class Protocol { kNone, kPmix, kPmi1 };
  Protocol protocol = Protocol::kNone;  // none: no launcher, or it has started no other process
  int socket = -1, rank = 0, size = 1;  // for PMI; PMIx's library finds its server by itself
};

}  // namespace ringmaster::process_manager
