// Writes the planner's events. They regard the job, so that they stay where people look for them;
// one that concerns a pod names it as related.
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

// Some minutes of a busy operator.
inline constexpr std::size_t kMostEventsWaiting = 2000;

class EventWriter {
 public:
  // `instance`: of the operator, as events name it. `pods` outlives the writer. `dropped`: called
  // for each event that can't be kept until it is written; may be null. `most_waiting`: so many are
  // kept; 0: none, so none is written.
  EventWriter(std::shared_ptr<kube::KubeApi> api, const std::string& instance,
              const runtime::Informer* pods, std::function<void()> dropped = nullptr,
              std::size_t most_waiting = kMostEventsWaiting);

  // Doesn't wait for the API server.
  void EmitEvent(const api::HorovodJob& job, const planner::Event& event);
  // False: not all of them are written within `timeout`.
  bool Flush(std::chrono::milliseconds timeout) { return queue_.Flush(timeout); }

 private:
  runtime::EventRecorder recorder_;
  const runtime::Informer* const pods_;
  runtime::EventQueue queue_;  // last: its thread uses what is above
};

}  // namespace ringmaster::controllers
