// One worker process of this pod as the sidecar knows it, in parts that change together: which
// process it is, its connection, whether it lives, how far it has come with views, where it stands
// between init() and its end, and what it reports of its training.
//
// Plain data of the sidecar's loop.
#pragma once

#include <string>

#include "sidecar/app/process_identity.h"
#include "sidecar/app/step_figures.h"
#include "sidecar/app/view_progress.h"
#include "sidecar/app/worker_connection.h"
#include "sidecar/app/worker_liveness.h"
#include "sidecar/app/worker_stage.h"

namespace ringmaster::app {

using membership::ViewPtr;

struct WorkerProcess {
  WorkerProcess() = default;
  // `slot` -1: a standby.
  WorkerProcess(int slot, uint64_t incarnation) : identity(slot, incarnation) {}

  bool standby() const { return identity.standby(); }
  int slot() const { return identity.slot(); }

  ProcessIdentity identity;
  WorkerConnection connection;
  WorkerLiveness liveness;
  ViewProgress views;
  WorkerStage stage;
  StepFigures figures;
  std::string tcp, shm;  // where other workers reach it
  std::string library;   // its version; empty: it has not said
};

}  // namespace ringmaster::app
