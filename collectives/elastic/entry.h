// A worker's way into a view: it asks its sidecar to be let in, and waits until it is.
//
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "collectives/elastic/sidecar_frames.h"
#include "collectives/elastic/worker_registration.h"
#include "collectives/engine/engine.h"

namespace ringmaster::elastic {

class Entry {
 public:
  using Clock = std::chrono::steady_clock;

  // `patience`: how long a sidecar that is not heard is waited for.
  Entry(WorkerRegistration* registration, SidecarFrames* frames, const engine::StateRegistry* state,
        std::chrono::milliseconds patience)
      : registration_(registration), frames_(frames), state_(state), patience_(patience) {}

  // Asks to be let into a view, and waits until the worker is in one. RM_ERR_UNAVAILABLE: the
  // sidecar is gone for good, as it seems.
  Status Await(engine::Engine* engine, Clock::time_point deadline);
  // Asks to take part in the beginning of the job, and waits for that. RM_ERR_TIMEOUT before the
  // deadline: the job has begun without this worker, which is a joiner now.
  Status AwaitBegin(engine::Engine* engine, Clock::time_point deadline);
  // Asks once more, because the sidecar may not know that the user waits.
  void AskAgain() { frames_->Enter(stateless()); }

  // The sidecar was not heard for so long that the worker counts as dropped, until the sidecar
  // sends a view or calls the worker a joiner.
  void Fence();
  // The sidecar is heard, and sends the view that this worker has left: it counts on the worker in
  // it still, and lets it in nowhere else.
  void FenceAgain() { fenced_ = counted_on_ = true; }
  void Unfence() { fenced_ = counted_on_ = false; }
  bool fenced() const { return fenced_; }

 private:
  void Ask();
  // The worker is a joiner whose script has registered no state that it could load.
  bool stateless() const;
  Status AwaitView(engine::Engine* engine, Clock::time_point deadline) const;
  // Both: no value: the worker is to wait as the other one does.
  std::optional<Status> AwaitUnfenced(engine::Engine* engine, Clock::time_point deadline) const;
  std::optional<Status> AwaitHeardView(engine::Engine* engine, Clock::time_point deadline) const;

  WorkerRegistration* const registration_;
  SidecarFrames* const frames_;
  const engine::StateRegistry* const state_;
  const std::chrono::milliseconds patience_;
  std::atomic<bool> fenced_{false};
  std::atomic<bool> counted_on_{false};  // in the view that the worker has left
};

}  // namespace ringmaster::elastic
