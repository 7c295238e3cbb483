#include "operator/scheduler/prospect.h"

namespace ringmaster::scheduler {

Prospect::Prospect(const Capacity& capacity, const ShapePtr& shape) : shape_(shape) {
  for (const std::string& node : capacity.nodes().OpenTo(*shape)) {
    Room& room = rooms_[node];
    room.allocatable = capacity.nodes().AllocatableOf(node);
    const auto used = capacity.nodes().used().find(node);
    if (used != capacity.nodes().used().end()) room.used = used->second;
  }
  ForEachOfJobs(capacity,
                [&](const std::string& job, const std::string& node, const Amounts& requests) {
                  const auto room = rooms_.find(node);
                  if (room == rooms_.end()) return;
                  for (const auto& [resource, n] : requests) {
                    room->second.used[resource] -= n;
                    taken_[job][node][resource] += n;
                  }
                });
  for (auto& [node, room] : rooms_) {
    room.fits = CountFits(room.allocatable, room.used, shape->requests);
    alone_ += room.fits;
  }
}

int Prospect::AloneOn(const std::string& node) const {
  const auto room = rooms_.find(node);
  return room == rooms_.end() ? 0 : room->second.fits;
}

int Prospect::Beside(const std::string& job) const {
  int fits = alone_;
  const auto taken = taken_.find(job);
  if (taken == taken_.end()) return fits;
  for (const auto& [node, amounts] : taken->second) {
    const Room& room = rooms_.at(node);
    Amounts used = room.used;
    for (const auto& [resource, n] : amounts) used[resource] += n;
    fits -= room.fits - CountFits(room.allocatable, used, shape_->requests);
  }
  return fits;
}

}  // namespace ringmaster::scheduler
