// The ranks that take part in an operation (all ranks of the view, those of a process set, or the
// two of a transfer), and the communicator that connects them. A communicator of some ranks only is
// made when the first operation among them runs in the view. Those of process sets are lent
// channels of the arenas, so that their ranks talk over shared memory where they have any.
//
// Owner: CpuBackend. Thread rule: the engine's thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/response.h"
#include "collectives/engine/set_channels.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

class Participants {
 public:
  struct Ranks {
    std::unique_ptr<Communicator> own;  // owns `host` if only some ranks take part
    Communicator* host = nullptr;       // connects them
    std::vector<std::string> workers;   // by rank
  };

  // A view of `workers`, by rank; `host` stays valid until Uninstall().
  void Install(Communicator* host, const std::vector<std::string>& workers) {
    world_ = {nullptr, host, workers};
  }
  void Uninstall() {
    world_.host = nullptr;
    some_.clear();
    channels_.Clear();
  }
  void ForgetSet(int32_t process_set) {
    std::erase_if(some_, [&](const auto& entry) { return entry.first.first == process_set; });
    channels_.Forget(process_set);
  }

  const Ranks& world() const { return world_; }
  // *ranks: those that take part in the response; null: this rank is not one of them. Valid until
  // Uninstall() or ForgetSet(). All ranks of the view must ask for all responses, in their order,
  // because that is how they agree on the channels. Errors are those of Communicator::Subset.
  Status Choose(const Response& response, const Ranks** ranks);
  // Instead of Choose, for a response that runs elsewhere.
  void Note(const Response& response) { ChannelOf(response); }
  // Whether the ranks of this set have been given a part of the shared memory, where there is any.
  // The same on all ranks of the view.
  bool HasChannel(int32_t process_set) const { return channels_.Has(process_set); }

 private:
  // 0: its ranks have none.
  int ChannelOf(const Response& response);

  Ranks world_;
  SetChannels channels_;
  std::map<std::pair<int32_t, std::vector<int>>, Ranks> some_;  // by process set and ranks
};

}  // namespace ringmaster::engine
