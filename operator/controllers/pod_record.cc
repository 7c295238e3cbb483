#include "operator/controllers/pod_record.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/controllers/pod_facts.h"
#include "operator/controllers/pod_identity.h"
#include "operator/controllers/slim_objects.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

// As HasLabels with LabelsOf, for less.
bool IsLabelled(const Json& pod, const std::string& job, const PodRecord& record) {
  const auto index = IndexOf(job, record.facts.name);
  const Json& labels = fields::ObjectAt(pod, "/metadata/labels");
  return index && fields::Text(labels, api::kJobNameLabel) == job &&
         fields::Text(labels, api::kJobUidLabel) == record.owner &&
         fields::Text(labels, api::kJobRoleLabel) == api::kWorkerRole &&
         fields::Text(labels, api::kReplicaIndexLabel) == std::to_string(*index);
}

void TakeIfOwned(const api::HorovodJob& job, const PodRecord& pod,
                 std::vector<planner::PodFacts>* pods) {
  if (!IsOwnedBy(pod, job.uid)) return;
  planner::PodFacts facts = pod.facts;
  // The pod's labels were just removed; this reconcile restores them.
  if (facts.index < 0) facts.index = IndexOf(job.name, facts.name).value_or(-1);
  if (facts.index >= 0) pods->push_back(std::move(facts));
}

void SortByIndex(std::vector<planner::PodFacts>* pods) {
  std::sort(pods->begin(), pods->end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
}

}  // namespace

PodRecord ReadPodRecord(const Json& pod) {
  PodRecord record{.facts = ReadPod(pod)};
  for (const Json& owner : fields::ListAt(pod, "/metadata/ownerReferences")) {
    if (!fields::Flag(owner, "controller")) continue;
    record.owner = fields::Text(owner, "uid");
    record.is_labelled = IsLabelled(pod, fields::Text(owner, "name"), record);
    break;  // an object has one controller
  }
  return record;
}

runtime::InformerOptions InformerOptionsForPods() {
  const auto extract = [](const Json& pod) {
    return std::make_shared<const PodRecord>(ReadPodRecord(pod));
  };
  return {.keep = SlimPod,
          .index = JobKeyOf,
          .storage = {.packed = true, .extract = extract},
          .unread = UnreadOfPods()};
}

const PodRecord& RecordOf(const runtime::ObjectPtr& pod) { return *pod.extract<PodRecord>(); }

bool IsOwnedBy(const PodRecord& pod, const std::string& uid) {
  return !uid.empty() && pod.owner == uid;
}

std::vector<planner::PodFacts> PodsOf(const api::HorovodJob& job,
                                      const std::vector<runtime::ObjectPtr>& pods) {
  std::vector<planner::PodFacts> facts;
  for (const runtime::ObjectPtr& pod : pods) TakeIfOwned(job, RecordOf(pod), &facts);
  SortByIndex(&facts);
  return facts;
}

std::vector<planner::PodFacts> PodsOf(const api::HorovodJob& job, const std::vector<Json>& pods) {
  std::vector<planner::PodFacts> facts;
  for (const Json& pod : pods) TakeIfOwned(job, ReadPodRecord(pod), &facts);
  SortByIndex(&facts);
  return facts;
}

}  // namespace ringmaster::controllers
