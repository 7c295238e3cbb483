#include "operator/scheduler/held_places.h"

#include <utility>

namespace ringmaster::scheduler {

void HeldPlaces::Set(const std::string& path, Place place) {
  Place& known = places_[path];
  // Another pod may have had the same name before.
  if (known.uid != place.uid) paths_.erase(known.uid);
  if (!place.uid.empty()) paths_[place.uid] = path;
  known = std::move(place);
}

void HeldPlaces::Remove(const std::string& path) {
  const auto place = places_.find(path);
  if (place == places_.end()) return;
  paths_.erase(place->second.uid);
  places_.erase(place);
}

const HeldPlaces::Place* HeldPlaces::Find(const std::string& path) const {
  const auto place = places_.find(path);
  return place == places_.end() ? nullptr : &place->second;
}

bool HeldPlaces::HasForMade(const std::string& path) const {
  const Place* const place = Find(path);
  return place != nullptr && !place->uid.empty() && !place->gated;
}

std::optional<std::string> HeldPlaces::PathOfPod(const std::string& uid) const {
  const auto path = paths_.find(uid);
  return path == paths_.end() ? std::nullopt : std::optional(path->second);
}

std::vector<std::string> HeldPlaces::PathsOn(const std::string& node) const {
  std::vector<std::string> paths;
  for (const auto& [path, place] : places_) {
    if (place.node == node) paths.push_back(path);
  }
  return paths;
}

}  // namespace ringmaster::scheduler
