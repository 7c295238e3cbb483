#include "operator/controllers/leaving_pods.h"

#include <chrono>
#include <initializer_list>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/api/time.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

constexpr std::chrono::seconds kUsualGrace{30};

// That it was deleted or told to leave, and when, as it is written on the pod; empty: neither. This
// is less than IsLeaving(): a pod that is only asked to leave may be held for as long as its job
// needs it, so nobody may count on its room before it is told.
std::string LeavesSince(const Json& pod) {
  const std::string deleted = fields::TextAt(pod, "/metadata/deletionTimestamp");
  if (api::ParseTime(deleted)) return "deleted " + deleted;
  const Json& annotations = fields::At(pod, "/metadata/annotations");
  if (fields::Text(annotations, api::kDrainAnnotation).empty()) return "";
  const std::string told = fields::Text(annotations, api::kDrainSinceAnnotation);
  return api::ParseTime(told) ? "told " + told : "";
}

std::chrono::seconds GraceOf(const Json& pod) {
  for (const char* path :
       {"/metadata/deletionGracePeriodSeconds", "/spec/terminationGracePeriodSeconds"}) {
    const Json& grace = fields::At(pod, path);
    if (grace.is_number_integer()) return std::chrono::seconds(grace.get<int>());
  }
  return kUsualGrace;
}

}  // namespace

std::optional<scheduler::Moment> LeavingPods::By(const Json& pod, scheduler::Moment now) {
  const std::string uid = fields::TextAt(pod, "/metadata/uid");
  const std::string since = LeavesSince(pod);
  if (since.empty()) {
    Remove(uid);
    return std::nullopt;
  }
  Leaving& leaving = known_[uid];
  if (leaving.since != since) leaving = {since, now + GraceOf(pod)};
  return leaving.by;
}

}  // namespace ringmaster::controllers
