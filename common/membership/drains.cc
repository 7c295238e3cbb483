#include "common/membership/drains.h"

#include <algorithm>

namespace ringmaster::membership {

void Drains::Request(const DrainRequested& request) {
  Add(request.uids);
  // A deadline of other pods does not concern this one.
  const bool own = std::find(request.uids.begin(), request.uids.end(), self_) != request.uids.end();
  if (!own || !request.deadline) return;
  // The operator and the TERM signal may each give a deadline; the pod is killed at the earlier
  // one.
  deadline_ = std::min(deadline_.value_or(*request.deadline), *request.deadline);
}

std::vector<std::string> Drains::LeavingPods(const View& view) const {
  std::vector<std::string> leaving;
  for (const std::string& pod : pods_) {
    if (view.FindPod(pod) >= 0) leaving.push_back(pod);
  }
  return leaving;
}

void Drains::EnterView(bool in_view) {
  left_ = draining() && !in_view;
  expired_ = false;
}

std::vector<std::string> Drains::TakeDeparted(const View& view) {
  std::vector<std::string> departed;
  std::erase_if(pods_, [&](const std::string& pod) {
    const bool gone = pod != self_ && view.FindPod(pod) < 0;
    if (gone) departed.push_back(pod);
    return gone;
  });
  return departed;
}

std::optional<TimePoint> Drains::NextDeadline() const {
  return expired_ ? std::nullopt : deadline_;
}

bool Drains::Expire(TimePoint now) {
  if (expired_ || !deadline_ || *deadline_ > now) return false;
  expired_ = true;
  return true;
}

}  // namespace ringmaster::membership
