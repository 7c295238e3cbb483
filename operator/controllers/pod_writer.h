// Makes, labels, admits, annotates, deletes and releases the pods of a job. What the API server
// answers goes to the caches at once, so that the next look at the job is not older than this one's
// writes.
//
// Pods are made, and let start, several at a time.
//
// Each method returns false where the job has to be looked at again after a while.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"
#include "operator/controllers/creation_backoff.h"
#include "operator/controllers/event_writer.h"
#include "operator/controllers/pod_options.h"
#include "operator/kube/kube_api.h"
#include "operator/planner/decision.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/clock.h"
#include "operator/runtime/informer.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers {

struct PodWriterOptions {
  PodOptions pod;
  // Pods carry the finalizer that keeps them until their death is proven or doesn't matter.
  bool proof_finalizer = true;
  std::size_t calls_at_once = 8;  // to the API server
  runtime::Clock clock;
};

class PodWriter {
 public:
  // Pods that were written go to `pods`; `jobs` tells whether a job is still what it was. Both
  // outlive the writer.
  struct Caches {
    runtime::Informer* pods = nullptr;
    const runtime::Informer* jobs = nullptr;
  };

  PodWriter(std::shared_ptr<kube::KubeApi> api, const Caches& caches, runtime::WorkQueue* queue,
            CreationBackoff* backoff, EventWriter* events, PodWriterOptions options);

  // Stops where the job changes meanwhile, after as many as one look may take, and, with at least
  // one made, where a pod of this job or of one that waits for a worker is about to leave: the job
  // comes back for the rest, so that drains, and other jobs, don't wait for that. With fewer than
  // `least` of those that are granted the job can't train: where they are refused, what was made of
  // them would only hold what others need, and is deleted, and `useless_alone` with it.
  bool CreateAll(const api::HorovodJob& job, const std::vector<planner::PodCreate>& creates,
                 int least = 0, const std::vector<planner::PodDelete>& useless_alone = {});
  // Writes the labels by which pods of the job are found, where somebody has taken them off.
  // Without the label of the role a pod is not even in the cache, but its sidecar has been heard.
  // False: not all of them can be found yet.
  bool RestoreLabels(const api::HorovodJob& job,
                     const std::vector<planner::SidecarFacts>& sidecars);
  // Takes the scheduling gates off, and stops as above. Where that is refused it is asked for again
  // after a while, like a pod that can't be made.
  bool AdmitAll(const api::HorovodJob& job, const std::vector<planner::PodAdmit>& pods);
  // A null value removes the annotation.
  bool Annotate(const api::HorovodJob& job, const std::string& pod, const std::string& uid,
                const kube::Json& annotations);
  bool Delete(const api::HorovodJob& job, const planner::PodDelete& pod);
  // Takes the finalizer off.
  bool Release(const api::HorovodJob& job, const planner::PodRelease& pod);

 private:
  // What has become of one pod that was to be made.
  struct Attempt {
    bool there = false;  // if not, the others needn't be tried
    kube::Json made;     // null: it was there before, or isn't
    bool name_taken = false;
    std::optional<kube::Error> refused;
  };
  Attempt Create(const api::HorovodJob& job, const planner::PodCreate& create);
  // Nullopt: the gate is off, or the pod is gone.
  std::optional<kube::Error> Admit(const api::HorovodJob& job, const planner::PodAdmit& pod);
  void TellNotAdmitted(const api::HorovodJob& job, const std::string& pod,
                       const kube::Error& error);
  bool IsStillWanted(const api::HorovodJob& job) const;
  bool IsEnough(const api::HorovodJob& job, std::size_t done) const;
  void TellCreated(const api::HorovodJob& job, const std::vector<kube::Json>& made,
                   const std::string& reason);
  Attempt NotCreated(const api::HorovodJob& job, const planner::PodCreate& create,
                     const kube::Error& error);
  void TellNotCreated(const api::HorovodJob& job, const std::string& pod, const Attempt& failed);
  bool Relabel(const api::HorovodJob& job, const kube::Json& pod, int index);

  const std::shared_ptr<kube::KubeApi> api_;
  runtime::Informer* const pods_;
  const runtime::Informer* const jobs_;
  runtime::WorkQueue* const queue_;
  CreationBackoff* const backoff_;
  EventWriter* const events_;
  const PodWriterOptions options_;
};

}  // namespace ringmaster::controllers
