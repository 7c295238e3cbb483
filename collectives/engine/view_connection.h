// The view that this worker is in, and whether it is connected in it: from the view's coming until
// it is stopped, has broken, or goes on without this worker.
//
// Owner: the engine's loop. Thread rule: the engine's thread only. What other threads may end is
// the HostCommunicator's.
#pragma once

#include <cstdint>

#include "collectives/engine/engine_listener.h"
#include "collectives/engine/host_communicator.h"
#include "collectives/engine/view.h"

namespace ringmaster::engine {

class ViewConnection {
 public:
  // All of them outlive this.
  ViewConnection(HostCommunicator* host, CommunicatorFactory* factory, EngineListener* listener)
      : host_(host), factory_(factory), listener_(listener) {}

  // The newest view that has come, even when it is over. Its epoch is 0 before the first one.
  const View& view() const { return view_; }
  // Connected, and all ranks stand at the same point: operations may run.
  bool active() const { return active_; }
  // Null: not connected. Valid until Connect() or Leave().
  Communicator* communicator() const { return host_->get(); }

  // False: the view is not newer than the newest that has come, or it must never be used again.
  bool Takes(uint64_t epoch) const;
  // Gives up the view there is and connects `view`, which lists this worker. On success operations
  // have to wait for Activate() still.
  Status Connect(View view);
  void Activate() { active_ = true; }
  // A view has come that doesn't list this worker.
  void PassBy(uint64_t epoch) { view_.epoch = epoch; }

  // Nothing runs any more and the connections are closed; the view may still be named.
  void Leave();
  // No view up to `epoch` will be used again. True: that ends the current view.
  bool Stop(uint64_t epoch);
  // The others may go on in the view without this worker. If the sidecar sends the same view again,
  // this worker is not in it.
  void Forgo() { Stop(view_.epoch); }

  // The view has failed at this worker, or could not be connected: ends what runs in it. Where
  // another view helps and the sidecar has not ended this one, tells the listener that it broke.
  // False: no other view helps, and `why` ends this worker.
  bool Break(const Status& why);

 private:
  CommunicatorOptions OptionsFor(const View& view);

  HostCommunicator* const host_;
  CommunicatorFactory* const factory_;
  EngineListener* const listener_;

  View view_;
  bool active_ = false;
  int broken_link_ = -1;  // the other end of the connection that broke first; -1: none is known
  uint64_t stopped_epoch_ = 0;  // views up to this one are never used again
};

}  // namespace ringmaster::engine
