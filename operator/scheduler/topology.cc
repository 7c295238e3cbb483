#include "operator/scheduler/topology.h"

#include <algorithm>
#include <tuple>

namespace ringmaster::scheduler {

void Topology::CountAnywhere(WaitingJob* waiting) const {
  waiting->answer.domain.clear();
  waiting->shapes = waiting->anywhere;
}

void Topology::CountIn(const std::string& domain, WaitingJob* waiting) const {
  CountAnywhere(waiting);
  waiting->answer.domain = domain;
  for (ShapePtr& shape : waiting->shapes) {
    shape = capacity_.shapes().On(*shape, waiting->request.near.label, domain);
  }
}

void Topology::Keep(const std::string& domain, WaitingJob* waiting) const {
  if (!domain.empty()) CountIn(domain, waiting);
}

void Topology::Choose(WaitingJob* waiting, bool taker) {
  const AdmissionRequest& request = waiting->request;
  const Nearness& near = request.near;
  if (near.label.empty() || request.pods.empty() || waiting->answer.fit > 0) return;
  if (!near.domain.empty()) return CountIn(near.domain, waiting);
  const std::string before = waiting->answer.domain;
  CountAnywhere(waiting);
  const Rooms& rooms = RoomsFor(*waiting);
  const auto rank = [&](const auto& domain) {
    return std::tuple(-std::min(domain.second, request.Most()), domain.second);
  };
  const auto best = std::min_element(
      rooms.begin(), rooms.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  const bool has_room = best != rooms.end() && best->second >= request.Least();
  if (has_room) {
    CountIn(best->first, waiting);
  } else if (taker) {
    Keep(before, waiting);
  } else if (near.required) {
    CountIn(DomainToWaitFor(*waiting), waiting);
  }
}

// Among the domains that can have room for the job one day, returns the one with the most room now.
std::string Topology::DomainToWaitFor(const WaitingJob& waiting) {
  const ShapePtr& shape = waiting.shapes.front();
  auto& prospect = prospects_[shape];
  if (prospect == nullptr) prospect = std::make_unique<const Prospect>(capacity_, shape);
  Rooms one_day;
  for (const std::string& node : capacity_.nodes().OpenTo(*shape)) {
    one_day[capacity_.nodes().LabelOf(node, waiting.request.near.label)] += prospect->AloneOn(node);
  }
  const Rooms& now = RoomsFor(waiting);
  const auto rank = [&](const std::string& domain) {
    const bool can = one_day.at(domain) >= waiting.request.Least();
    return std::tuple(!can, -now.at(domain), -one_day.at(domain));
  };
  const std::string* best = nullptr;
  for (const auto& [domain, room] : now) {
    if (best == nullptr || rank(domain) < rank(*best)) best = &domain;
  }
  return best == nullptr ? "" : *best;
}

const Topology::Rooms& Topology::RoomsFor(const WaitingJob& waiting) {
  const ShapePtr& shape = waiting.shapes.front();
  const std::string& label = waiting.request.near.label;
  const auto [known, is_new] = rooms_.try_emplace({shape, label});
  Rooms& rooms = known->second.rooms;
  if (!is_new && known->second.places_held == capacity_.held().size()) return rooms;
  known->second.places_held = capacity_.held().size();
  rooms.clear();
  for (const std::string& node : capacity_.nodes().OpenTo(*shape)) {
    const std::string domain = capacity_.nodes().LabelOf(node, label);
    if (!domain.empty()) rooms[domain] += capacity_.nodes().CountOn(node, shape->requests);
  }
  return rooms;
}

bool Topology::Widen(WaitingJob* waiting) const {
  const AdmissionRequest& request = waiting->request;
  if (request.near.required || waiting->answer.domain.empty()) return false;
  bool changed = false;
  for (std::size_t i = waiting->answer.fit; i < request.pods.size(); ++i) {
    changed = changed || waiting->anywhere[i] != waiting->shapes[i];
    waiting->shapes[i] = waiting->anywhere[i];
  }
  return changed;
}

}  // namespace ringmaster::scheduler
