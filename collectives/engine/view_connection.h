// The view that this worker is in, and whether the worker is connected in it: from the arrival of
// the view until it is stopped, has broken, or goes on without this worker.
//
// Owner: the engine's loop. Thread rule: the engine's thread only. Other threads abort a view
// through HostCommunicator.
#pragma once

#include <cstdint>

#include "collectives/engine/engine_listener.h"
#include "collectives/engine/host_communicator.h"
#include "collectives/engine/worker_view.h"

namespace ringmaster::engine {

class ViewConnection {
 public:
  // All of them outlive this.
  ViewConnection(HostCommunicator* host, CommunicatorFactory* factory, EngineListener* listener)
      : host_(host), factory_(factory), listener_(listener) {}

  // The newest view that has come, even when it is over. Its epoch is 0 before the first one.
  const WorkerView& view() const { return view_; }
  // Connected, and all ranks stand at the same point: operations may run.
  bool active() const { return active_; }
  // Null: not connected. Valid until Connect() or Leave().
  Communicator* communicator() const { return host_->get(); }

  // False: the view is not newer than the newest that has come, or it must never be used again.
  bool Takes(uint64_t epoch) const;
  // Gives up the current view and connects `view`, which lists this worker. After it the recovery
  // may use communicator(); operations have to wait for Activate(). Errors as
  // HostCommunicator::Connect.
  Status Connect(WorkerView view);
  void Activate() { active_ = true; }
  // A view has come that doesn't list this worker.
  void PassBy(uint64_t epoch) { view_.epoch = epoch; }

  // Closes the connections. view() keeps the view that was left.
  void Leave();
  // No view up to `epoch` will be used again. True: the current view is one of them, so the caller
  // has to leave it.
  bool Stop(uint64_t epoch);
  // This worker was dropped, and the others may go on in the view without it. So it must not use
  // this view again, even if the sidecar sends it again.
  void Forgo() { Stop(view_.epoch); }

  // The view has failed at this worker, or could not be connected: ends what runs in it. If another
  // view can help, and the sidecar has not stopped this one, it tells the listener that the view
  // broke. False: no other view can help, so `why` ends this worker's part in the job.
  bool Break(const Status& why);

 private:
  CommunicatorOptions OptionsFor(const WorkerView& view);

  HostCommunicator* const host_;
  CommunicatorFactory* const factory_;
  EngineListener* const listener_;

  WorkerView view_;
  bool active_ = false;
  int broken_link_ = -1;  // the other end of the connection that broke first; -1: none is known
  uint64_t stopped_epoch_ = 0;  // views up to this one are never used again
};

}  // namespace ringmaster::engine
