// The NCCL communicator of all ranks of a view, or of a process set. It is made when it is first
// needed in a view, from the one of an earlier view if that is possible.
//
// Owner: NcclBackend. Thread rule: the engine's thread only.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/nccl/connect_plan.h"
#include "collectives/nccl/gpu.h"
#include "collectives/nccl/nccl_link.h"
#include "ringmaster/communicator.h"

namespace ringmaster::nccl {

// Limits for the waits of the backend.
struct WaitLimits {
  std::chrono::milliseconds connect{60'000};  // making or shrinking a communicator
  // One collective; the user's work that its input waits for, or for which the device waits before
  // it frees a communicator's memory.
  std::chrono::milliseconds collective{600'000};
  std::chrono::milliseconds quiet{30'000};  // the end of our own work that was aborted
};

class NcclGroup {
 public:
  NcclGroup(Gpu gpu, WaitLimits limits) : gpu_(std::move(gpu)), limits_(limits) {}

  // Connects the group; all ranks of `host`, the group's communicator on the host, call it.
  // `device` is the calling thread's: a communicator on another one is given up. `failed`: how many
  // attempts have failed here before, one after the other; if this is another attempt, it becomes
  // the most that any rank says. Afterwards link() is NCCL's communicator on all ranks, or null on
  // all: not all of them have NCCL, or it has failed too often.
  Status Connect(Communicator* host, int device, int* failed, const Patience::Over& over);
  bool connected() const { return by_ != By::kNothing; }
  NcclLink* link() const { return by_ == By::kNccl ? link_.get() : nullptr; }
  const std::string& why_on_host() const { return why_on_host_; }

  // The next view comes by a plan, or after a fault.
  void ExpectView(bool planned) { faults_ += planned ? 0 : 1; }

  // ---- At the end of a view
  // The communicator, whether it is connected in this view or was in an earlier one; null: none.
  NcclLink* kept() const { return link_.get(); }
  // Keeps the communicator for the next view.
  void Leave() { by_ = By::kNothing; }
  // Gives the communicator up: adds it to `comms`, and the caller aborts it.
  void GiveUp(std::vector<GivenUp>* comms);

 private:
  // What the ranks use in this view. They have all come to the same plan, so it is the same on all.
  enum class By { kNothing, kNccl, kHost };

  Status Exchange(Communicator* host, int* failed, ConnectPlan* plan);
  Status Shrink(const ConnectPlan& plan, const Patience& patience, const Patience::Over& over);
  Status Init(Communicator* host, int device, const Patience::Over& over);
  // Aborts link_, or these, and waits for all aborts of this group. The end of the view may end the
  // wait; the next call waits on.
  Status AbortOwn(const Patience& patience);
  Status Abort(const std::vector<GivenUp>& comms, const Patience& patience);

  const Gpu gpu_;
  const WaitLimits limits_;
  std::unique_ptr<NcclLink> link_;  // of this view if by_ is kNccl, else of an earlier one
  By by_ = By::kNothing;            // kNothing: the ranks are not connected yet
  int faults_ = 0;                  // views since link_ was made that came by a fault
  Ended aborted_;  // of communicators that were given up while connecting; empty: all have ended
  std::string why_on_host_;
};

}  // namespace ringmaster::nccl
