// The NCCL communicator of all ranks of a view, or of a process set: made when it is first needed
// in a view, out of the one from the view before where that can be.
//
// Owner: NcclBackend. Thread rule: the engine's thread only.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "collectives/nccl/connect_plan.h"
#include "collectives/nccl/nccl_link.h"
#include "ringmaster/communicator.h"

namespace ringmaster::nccl {

// How long the backend waits for what ends by itself if all is well.
struct Limits {
  std::chrono::milliseconds connect{60'000};      // a communicator
  std::chrono::milliseconds collective{600'000};  // one collective, and what its input waits for
  std::chrono::milliseconds quiet{30'000};        // the end of what was aborted
};

class NcclGroup {
 public:
  // `api`: null: this rank has no NCCL.
  NcclGroup(std::shared_ptr<NcclApi> api, Limits limits) : api_(std::move(api)), limits_(limits) {}

  // A collective of all ranks of `host`, the group's communicator on the host. Afterwards link() is
  // NCCL's, or null: not all have NCCL.
  Status Connect(Communicator* host, const Patience::Over& over);
  bool connected() const { return connected_; }
  NcclLink* link() const { return connected_ ? link_.get() : nullptr; }
  const std::string& why_on_host() const { return why_on_host_; }

  // The next view has come about: by a plan, or after a fault.
  void ExpectView(bool planned) { faults_ += planned ? 0 : 1; }

  // ---- The view is over. First MarkRevoked() of all groups, then AwaitRevoked() of all.
  void MarkRevoked();
  // False: it may still run.
  bool AwaitRevoked();
  // Keeps the communicator for the next view.
  void Leave() { connected_ = false; }
  // Does not keep it. The caller aborts what is added to `comms`.
  void GiveUp(std::vector<Comm>* comms);

 private:
  Status Exchange(Communicator* host, ConnectPlan* plan);
  Status Shrink(const ConnectPlan& plan, const Patience& patience);
  Status Init(Communicator* host, const Patience& patience);

  const std::shared_ptr<NcclApi> api_;
  const Limits limits_;
  std::unique_ptr<NcclLink> link_;  // of this view if connected_, else of one before
  bool connected_ = false;
  int faults_ = 0;  // views since link_ was made that came by no plan
  std::string why_on_host_;
};

}  // namespace ringmaster::nccl
