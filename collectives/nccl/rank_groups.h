// The groups of ranks that take part in operations: all ranks of the view, and the ranks of each
// process set. Each group has an NCCL communicator.
//
// Thread rule: the engine's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/nccl/gpu.h"
#include "collectives/nccl/nccl_group.h"
#include "ringmaster/communicator.h"

namespace ringmaster::nccl {

struct RankGroup {
  int32_t set = 0;  // its number; 0: the world
  Communicator* host = nullptr;
  std::unique_ptr<Communicator> own;  // of a process set, else null
  std::vector<std::string> workers;   // by rank
  std::unique_ptr<NcclGroup> group;
};

class RankGroups {
 public:
  RankGroups(Gpu gpu, WaitLimits limits);
  ~RankGroups();
  RankGroups(const RankGroups&) = delete;
  RankGroups& operator=(const RankGroups&) = delete;

  void ExpectView(bool planned) { world_.group->ExpectView(planned); }
  // A view begins.
  void Install(Communicator* host, const std::vector<std::string>& workers);
  // The group that runs this operation; null: this rank isn't in it.
  Status Choose(const engine::Response& response, RankGroup** out);
  // The process set is removed: all its ranks call it, after the same operation. *aborts, if it is
  // set, tells how its communicator ends (at the exit of the process it is leaked). An error: the
  // view is over, and the communicator is given up with the others.
  Status Forget(int32_t process_set, Ended* aborts);
  // Leaves all communicators to the end of the process.
  void Leak();
  // The view is over. The communicator of all its ranks is kept for the next view; those of process
  // sets are gone.
  void Leave();

  std::vector<NcclGroup*> All();
  NcclGroup* world() { return world_.group.get(); }

 private:
  const Gpu gpu_;
  const WaitLimits limits_;
  RankGroup world_;
  std::map<int32_t, RankGroup> sets_;  // of this view, by number
};

}  // namespace ringmaster::nccl
