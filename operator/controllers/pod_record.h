// What the cache of pods keeps of each beside the packed object: what every look at a job asks for.
// At most looks only few of a job's pods have changed, so it is read when an object is stored.
//
// Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

#include "operator/api/horovod_job.h"
#include "operator/planner/snapshot.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

struct PodRecord {
  planner::PodFacts facts;
  std::string owner;         // uid of the object that controls it; empty: none
  bool is_labelled = false;  // it has the labels by which a pod of its owner is found
};

PodRecord ReadPodRecord(const kube::Json& pod);
// How a cache of pods keeps them: slim, packed, with their records, by job.
runtime::InformerOptions InformerOptionsForPods();
// `pod` is from such a cache.
const PodRecord& RecordOf(const runtime::ObjectPtr& pod);
// Whether the object with this uid controls the pod. Nothing has an empty uid.
bool IsOwnedBy(const PodRecord& pod, const std::string& uid);

// Facts about those of the worker pods that the job owns, by index. The first is of pods from a
// cache.
std::vector<planner::PodFacts> PodsOf(const api::HorovodJob& job,
                                      const std::vector<runtime::ObjectPtr>& pods);
std::vector<planner::PodFacts> PodsOf(const api::HorovodJob& job,
                                      const std::vector<kube::Json>& pods);

}  // namespace ringmaster::controllers
