// A worker's way into a view: it asks its sidecar to be let in, and waits until it is.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "collectives/elastic/sidecar_frames.h"
#include "collectives/elastic/worker_registration.h"
#include "collectives/engine/engine.h"

namespace ringmaster::elastic {

class Entry {
 public:
  using Clock = std::chrono::steady_clock;

  Entry(WorkerRegistration* registration, SidecarFrames* frames, const engine::StateRegistry* state)
      : registration_(registration), frames_(frames), state_(state) {}

  // The user waits to be in a view.
  Status Await(engine::Engine* engine, Clock::time_point deadline);
  // The user waits for the job to begin. RM_ERR_TIMEOUT before the deadline: it has begun without
  // this worker, which is a joiner now.
  Status AwaitBegin(engine::Engine* engine, Clock::time_point deadline);
  // The sidecar may not know that the user waits.
  void AskAgain() { frames_->Enter(stateless()); }

  // The sidecar was not heard for so long that the worker counts as out of its view, until the
  // sidecar says something of one.
  void Fence() { fenced_ = true; }
  void Unfence() { fenced_ = false; }
  bool fenced() const { return fenced_; }

 private:
  void Ask();
  // The worker would be a joiner whose script has registered no state to load.
  bool stateless() const;
  Status AwaitView(engine::Engine* engine, Clock::time_point deadline) const;

  WorkerRegistration* const registration_;
  SidecarFrames* const frames_;
  const engine::StateRegistry* const state_;
  std::atomic<bool> fenced_{false};
};

}  // namespace ringmaster::elastic
