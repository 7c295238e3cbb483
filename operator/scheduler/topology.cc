#include "operator/scheduler/topology.h"

#include <algorithm>
#include <tuple>

namespace ringmaster::scheduler {

void Topology::CountAnywhere(WaitingJob* waiting) const {
  waiting->answer.domain.clear();
  waiting->shapes.clear();
  for (const auto& pod : waiting->request.pods) {
    waiting->shapes.push_back(capacity_.ShapeOf(*pod));
  }
}

void Topology::CountIn(const std::string& domain, WaitingJob* waiting) const {
  CountAnywhere(waiting);
  waiting->answer.domain = domain;
  for (ShapePtr& shape : waiting->shapes) {
    shape = capacity_.ShapeOn(*shape, waiting->request.near.label, domain);
  }
}

void Topology::Keep(const std::string& domain, WaitingJob* waiting) const {
  if (!domain.empty()) CountIn(domain, waiting);
}

void Topology::Choose(WaitingJob* waiting) const {
  const AdmissionRequest& request = waiting->request;
  const Nearness& near = request.near;
  if (near.label.empty() || request.pods.empty() || waiting->answer.fit > 0) return;
  if (!near.domain.empty()) return CountIn(near.domain, waiting);
  CountAnywhere(waiting);
  const std::map<std::string, int> room = RoomFor(*waiting);
  const auto rank = [&](const auto& domain) {
    return std::tuple(-std::min(domain.second, request.Most()), domain.second);
  };
  const auto best = std::min_element(
      room.begin(), room.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  const int most = best == room.end() ? 0 : best->second;
  if (most < request.Least() && !near.required) return;
  // Where no node has the label, it waits for one that has.
  CountIn(best == room.end() ? "" : best->first, waiting);
}

std::map<std::string, int> Topology::RoomFor(const WaitingJob& waiting) const {
  std::map<std::string, int> room;
  const ShapePtr& shape = waiting.shapes.front();
  for (const std::string& node : capacity_.nodes().OpenTo(*shape)) {
    const std::string domain = capacity_.nodes().LabelOf(node, waiting.request.near.label);
    if (!domain.empty()) room[domain] += capacity_.nodes().CountOn(node, shape->requests);
  }
  return room;
}

bool Topology::Widen(WaitingJob* waiting) const {
  const AdmissionRequest& request = waiting->request;
  if (request.near.required || waiting->answer.domain.empty()) return false;
  bool changed = false;
  for (std::size_t i = waiting->answer.fit; i < request.pods.size(); ++i) {
    ShapePtr anywhere = capacity_.ShapeOf(*request.pods[i]);
    changed = changed || anywhere != waiting->shapes[i];
    waiting->shapes[i] = std::move(anywhere);
  }
  return changed;
}

}  // namespace ringmaster::scheduler
