// Writes the planner's events: about the job, or about one of its pods.
//
// Thread rule: every method is safe from any thread; EmitEvent blocks for one call to the API.
#pragma once

#include <memory>
#include <string>

#include "operator/api/horovod_job.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/runtime/event_recorder.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class EventWriter {
 public:
  // `instance`: of the operator, as events name it. `pods` outlives the writer.
  EventWriter(std::shared_ptr<kube::KubeApi> api, const std::string& instance,
              const runtime::Informer* pods)
      : recorder_(std::move(api), instance), pods_(pods) {}

  void EmitEvent(const api::HorovodJob& job, const planner::Event& event);

 private:
  runtime::EventRecorder recorder_;
  const runtime::Informer* const pods_;
};

}  // namespace ringmaster::controllers
