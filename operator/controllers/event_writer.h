// Writes the planner's events. They regard the job, because people look for them there; an event
// about a pod names the pod as related.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/runtime/event_queue.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

// Enough for some minutes of a busy operator.
inline constexpr std::size_t kMostEventsWaiting = 2000;

class EventWriter {
 public:
  // `instance` is the operator's name in events. `pods` outlives the writer. `dropped` is called
  // for each event that the full queue drops; it may be null. `most_waiting` is the size of the
  // queue; with 0 no events are written.
  EventWriter(std::shared_ptr<kube::KubeApi> api, const std::string& instance,
              const runtime::Informer* pods, std::function<void()> dropped = nullptr,
              std::size_t most_waiting = kMostEventsWaiting);

  // Returns without waiting for the API server.
  void EmitEvent(const api::HorovodJob& job, const planner::Event& event);
  // Returns false if not all events are written within `timeout`.
  bool Flush(std::chrono::milliseconds timeout) { return queue_.Flush(timeout); }

 private:
  runtime::EventRecorder recorder_;
  const runtime::Informer* const pods_;
  runtime::EventQueue queue_;  // last: its thread uses what is above
};

}  // namespace ringmaster::controllers
