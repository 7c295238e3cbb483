#include "operator/scheduler/grants.h"

#include <algorithm>
#include <utility>

#include "operator/api/object_key.h"

namespace ringmaster::scheduler {

void Grants::Grow(WaitingJob* waiting, int target) {
  const AdmissionRequest& request = waiting->request;
  GangFit& answer = waiting->answer;
  answer.decided = true;
  answer.why.clear();
  if (answer.fit >= request.Most()) return;
  if (IsSureToFail(*waiting, target)) {
    const Bound& bound = bounds_.at(waiting->shapes[answer.fit]);
    answer.why = bound.why;
    answer.tried = answer.fit + bound.fits;
    return;
  }
  std::string why;
  const int placed = PlaceUpTo(*waiting, target, &why);
  const int of_use = std::max(answer.fit, request.SizeOfUse(placed));
  for (int i = of_use; i < placed; ++i) capacity_.Undo(api::KeyOf(*request.pods[i]));
  for (int i = answer.fit; i < of_use; ++i) {
    granted_[request.job].push_back(api::KeyOf(*request.pods[i]));
  }
  if (placed < target) {
    int alike = 0;  // pods given back that have the shape of the pod that found no place
    for (int i = of_use; i < placed; ++i) alike += waiting->shapes[i] == waiting->shapes[placed];
    if (alike == placed - of_use) bounds_[waiting->shapes[placed]] = {alike, why};
  }
  answer.fit = of_use;
  answer.tried = placed;
  answer.why = std::move(why);
}

// Returns how many of the job's pods have places afterwards.
int Grants::PlaceUpTo(const WaitingJob& waiting, int target, std::string* why) {
  int placed = waiting.answer.fit;
  for (; placed < target; ++placed) {
    const ShapePtr& shape = waiting.shapes[placed];
    const auto node = capacity_.nodes().Place(*shape);
    if (!node) {
      *why = node.error();
      break;
    }
    capacity_.Hold(*waiting.request.pods[placed], shape, *node, waiting.request.job);
  }
  return placed;
}

// The job's next size needs more pods of one shape than are known to fit.
bool Grants::IsSureToFail(const WaitingJob& waiting, int target) const {
  const int fit = waiting.answer.fit;
  const auto& sizes = waiting.request.sizes;
  const auto next = std::upper_bound(sizes.begin(), sizes.end(), fit);
  if (next == sizes.end() || *next > target) return false;
  const ShapePtr& shape = waiting.shapes[fit];
  const auto bound = bounds_.find(shape);
  if (bound == bounds_.end()) return false;
  int alike = 0;
  while (fit + alike < *next && waiting.shapes[fit + alike] == shape) ++alike;
  return alike > bound->second.fits;
}

int Grants::BoundOf(const ShapePtr& shape) const {
  const auto bound = bounds_.find(shape);
  return bound == bounds_.end() ? -1 : bound->second.fits;
}

bool Grants::HoldsAllOf(const WaitingJob& waiting) const {
  const auto begin = waiting.request.pods.begin();
  return std::all_of(begin, begin + waiting.answer.fit,
                     [this](const auto& pod) { return capacity_.held().Has(api::KeyOf(*pod)); });
}

std::vector<std::string> Grants::PathsOf(const std::string& job) const {
  const auto granted = granted_.find(job);
  return granted == granted_.end() ? std::vector<std::string>() : granted->second;
}

int Grants::Drop(const std::string& job, const std::vector<std::string>& keep) {
  const auto granted = granted_.find(job);
  if (granted == granted_.end()) return 0;
  int dropped = 0;
  std::erase_if(granted->second, [&](const std::string& path) {
    if (!capacity_.held().Has(path) || capacity_.held().HasForMade(path)) return true;
    if (std::find(keep.begin(), keep.end(), path) != keep.end()) return false;
    capacity_.Release(path);
    ++dropped;
    return true;
  });
  if (granted->second.empty()) granted_.erase(granted);
  return dropped;
}

}  // namespace ringmaster::scheduler
