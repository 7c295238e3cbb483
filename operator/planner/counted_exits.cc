// Which exits of workers the status counts. Sidecars tell every operator of their newest exits,
// because the operator that heard of them may have died before it had written the status; so an
// exit may be heard of again that is counted.
#include <algorithm>

#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

// Exits are counted that the list lacks.
bool AreSomeOmitted(const api::Status& status) {
  const auto& omitted = status.counted_exits_omitted;
  return omitted ? *omitted > 0 : status.worker_restarts > 0;
}

}  // namespace

bool NoteExit(const Snapshot& in, DecisionDraft& out, const job::WorkerExit& exit) {
  api::Status& status = out.status;
  auto& counted = status.counted_exits;
  const auto known = std::find_if(counted.begin(), counted.end(), [&](const auto& one) {
    return one.slot == exit.slot && one.pod == exit.pod_uid;
  });
  if (known != counted.end()) {
    if (exit.incarnation <= known->incarnation) return false;
    known->incarnation = exit.incarnation;
    return true;
  }
  const bool is_pod_there = FindPod(in, exit.pod_uid) != nullptr;
  if (exit.told_before && (AreSomeOmitted(status) || !is_pod_there)) return false;
  int omitted = status.counted_exits_omitted.value_or(AreSomeOmitted(status) ? 1 : 0);
  if (is_pod_there && counted.size() < kMostUids) {
    counted.push_back({exit.pod_uid, exit.slot, exit.incarnation});
  } else if (is_pod_there) {
    ++omitted;
  }
  status.counted_exits_omitted = omitted;
  return true;
}

void ForgetExits(const Snapshot& in, DecisionDraft& out) {
  api::Status& status = out.status;
  std::erase_if(status.counted_exits,
                [&](const auto& one) { return FindPod(in, one.pod) == nullptr; });
  // Nobody is left who could tell of one again.
  if (in.pods.empty() && AreSomeOmitted(status)) status.counted_exits_omitted = 0;
}

}  // namespace ringmaster::planner
