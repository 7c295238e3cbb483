#include "operator/scheduler/placed_pods.h"

#include <utility>

namespace ringmaster::scheduler {

const PlacedPods::Pod& PlacedPods::Set(const std::string& uid, const std::string& node,
                                       const std::string& job, Amounts requests) {
  return pods_[uid] = {Intern(node), job.empty() ? nullptr : Intern(job),
                       Share(std::move(requests))};
}

void PlacedPods::Remove(const std::string& uid) {
  pods_.erase(uid);
  leaving_.erase(uid);
}

bool PlacedPods::SetLeaving(const std::string& uid, std::optional<Moment> by) {
  if (by) return leaving_.insert_or_assign(uid, *by).second;
  leaving_.erase(uid);
  return false;
}

std::shared_ptr<const std::string> PlacedPods::Intern(const std::string& name) {
  constexpr std::size_t kMost = 1024;
  if (names_.size() > kMost && names_.size() > 2 * pods_.size()) {
    std::erase_if(names_, [](const auto& known) { return known.second.use_count() == 1; });
  }
  auto& known = names_[name];
  if (known == nullptr) known = std::make_shared<const std::string>(name);
  return known;
}

std::shared_ptr<const Amounts> PlacedPods::Share(Amounts requests) {
  constexpr std::size_t kMost = 1024;
  if (amounts_.size() > kMost) {
    std::erase_if(amounts_, [](const auto& known) { return known.second.expired(); });
  }
  auto& known = amounts_[requests];
  auto shared = known.lock();
  if (shared == nullptr) {
    shared = std::make_shared<const Amounts>(std::move(requests));
    known = shared;
  }
  return shared;
}

}  // namespace ringmaster::scheduler
