// Creates, labels, annotates, deletes and releases the pods of a job. The API server's
// answers go to the caches at once, so that the next reconcile sees what this one wrote.
//
// Calls are made several at a time.
//
// Each method returns false if the job has to be reconciled again after a while.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
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
  std::size_t calls_at_once = 8;  // concurrent calls to the API server
  runtime::Clock clock;
};

class PodWriter {
 public:
  // Pods that were written go to `pods`; `jobs` tells whether a job has changed meanwhile. Both
  // outlive the writer.
  struct Caches {
    runtime::Informer* pods = nullptr;
    const runtime::Informer* jobs = nullptr;
  };

  PodWriter(std::shared_ptr<kube::KubeApi> api, const Caches& caches, runtime::WorkQueue* queue,
            CreationBackoff* backoff, EventWriter* events, PodWriterOptions options);

  // Creates the pods. Stops early if the job changes, after as many pods as one reconcile may
  // create, or, once at least one is created, if a pod of this job or another job is urgent (it is
  // about to leave); the job then comes back for the rest. With fewer than `least` of these pods
  // the job can't train: if one is refused, those created are deleted together with
  // `useless_alone`, because they would only hold resources that others need.
  bool CreateAll(const api::HorovodJob& job, const std::vector<planner::PodCreate>& creates,
                 int least = 0, const std::vector<planner::PodDelete>& useless_alone = {});
  // A pod of the job as the API server would store it now, after all its admission plugins; it is
  // asked by a dry run, so no pod is created. Where it can't make one it is the template's. Null:
  // it refuses, which is reported and pauses as for pods that can't be created, or nobody knows for
  // now.
  std::shared_ptr<const kube::Json> TryOut(const api::HorovodJob& job, int index);
  // Restores the labels by which pods of the job are found, if they were removed. A pod without the
  // role label is missing in the cache, but its sidecar is connected. Returns false if not all pods
  // can be found yet.
  bool RestoreLabels(const api::HorovodJob& job,
                     const std::vector<planner::SidecarFacts>& sidecars);
  // Whether a look may leave a part of what it wants to the next one.
  enum class Rest { kMayWait, kAtOnce };
  // Calls `call` with each number below `count`, several at a time. If the rest may wait, it stops
  // early, but not before the first ones are done, when a pod of this job or another job is urgent;
  // the job then comes back for the rest. Returns false if a call has.
  bool InBatches(const api::HorovodJob& job, std::size_t count, Rest rest,
                 const std::function<bool(std::size_t)>& call);
  // A null value removes the annotation.
  bool Annotate(const api::HorovodJob& job, const std::string& pod, const std::string& uid,
                const kube::Json& annotations);
  bool Delete(const api::HorovodJob& job, const planner::PodDelete& pod);
  // Removes the finalizer.
  bool Release(const api::HorovodJob& job, const planner::PodRelease& pod);

 private:
  // The result of creating one pod.
  struct Attempt {
    bool there = false;  // false: the other pods need not be tried
    kube::Json made;     // null: the pod existed before, or was not created
    bool name_taken = false;
    std::optional<kube::Error> refused;
  };
  kube::Json Build(const api::HorovodJob& job, const planner::PodCreate& create) const;
  Attempt Create(const api::HorovodJob& job, const planner::PodCreate& create);
  bool IsStillWanted(const api::HorovodJob& job) const;
  bool IsEnough(const api::HorovodJob& job, std::size_t done) const;
  void ReportCreated(const api::HorovodJob& job, const std::vector<kube::Json>& made,
                     const std::string& reason);
  Attempt NotCreated(const api::HorovodJob& job, const planner::PodCreate& create,
                     const kube::Error& error);
  void ReportNotCreated(const api::HorovodJob& job, Needed what, const std::string& pod,
                        const Attempt& failed);
  bool FindMissing(const api::HorovodJob& job, const std::string& pod, int index);
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
