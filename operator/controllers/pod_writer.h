// Makes, labels, admits, annotates, deletes and releases the pods of a job. What the API server
// answers goes to the caches at once, so that the next look at the job is not older than this one's
// writes.
//
// Each method returns false where the job has to be looked at again after a while.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"
#include "operator/controllers/capacity_cache.h"
#include "operator/controllers/creation_backoff.h"
#include "operator/controllers/event_writer.h"
#include "operator/controllers/pod_options.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

struct PodWriterOptions {
  PodOptions pod;
  // Pods carry the finalizer that keeps them until their death is proven or doesn't matter.
  bool proof_finalizer = true;
};

class PodWriter {
 public:
  // What hears of a pod that was written; all outlive the writer.
  struct Caches {
    runtime::Informer* pods = nullptr;
    CapacityCache* capacity = nullptr;  // null: no gang admission
  };

  PodWriter(std::shared_ptr<kube::KubeApi> api, const Caches& caches, runtime::WorkQueue* queue,
            CreationBackoff* backoff, EventWriter* events, PodWriterOptions options);

  bool CreateAll(const api::HorovodJob& job, const std::vector<planner::PodCreate>& creates);
  // Writes the labels by which pods of the job are found, where somebody has taken them off.
  // Without the label of the role a pod is not even in the cache, but its sidecar has been heard.
  // False: not all of them can be found yet.
  bool RestoreLabels(const api::HorovodJob& job,
                     const std::vector<planner::SidecarFacts>& sidecars);
  // Takes the scheduling gate off.
  bool Admit(const api::HorovodJob& job, const planner::PodAdmit& pod);
  // A null value removes the annotation.
  bool Annotate(const api::HorovodJob& job, const std::string& pod, const std::string& uid,
                const kube::Json& annotations);
  bool Delete(const api::HorovodJob& job, const planner::PodDelete& pod);
  // Takes the finalizer off.
  bool Release(const api::HorovodJob& job, const planner::PodRelease& pod);

 private:
  bool Create(const api::HorovodJob& job, const planner::PodCreate& create);
  bool NotCreated(const api::HorovodJob& job, const planner::PodCreate& create,
                  const kube::Error& error);
  bool Relabel(const api::HorovodJob& job, const kube::Json& pod, int index);

  const std::shared_ptr<kube::KubeApi> api_;
  runtime::Informer* const pods_;
  CapacityCache* const capacity_;
  runtime::WorkQueue* const queue_;
  CreationBackoff* const backoff_;
  EventWriter* const events_;
  const PodWriterOptions options_;
};

}  // namespace ringmaster::controllers
