#include "operator/scheduler/trial.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ringmaster::scheduler {

Trial::Trial(const Capacity& capacity, const std::vector<ShapePtr>& shapes) : capacity_(capacity) {
  NumberNodes(shapes);
  NumberResources(shapes);
  allocatable_.resize(names_.size() * resources_.size());
  used_.resize(allocatable_.size());
  const auto& used = capacity_.nodes().used();
  for (std::size_t node = 0; node < names_.size(); ++node) {
    const std::string& name = names_[node];
    if (exists_[node] != 0) FillIn(capacity_.nodes().AllocatableOf(name), node, &allocatable_);
    if (const auto on = used.find(name); on != used.end()) FillIn(on->second, node, &used_);
  }
  Keep();
}

void Trial::NumberNodes(const std::vector<ShapePtr>& shapes) {
  std::set<std::string> names;
  for (const auto& [name, amounts] : capacity_.nodes().used()) names.insert(name);
  for (const ShapePtr& shape : shapes) {
    if (!open_.try_emplace(shape->rules).second) continue;
    const auto& open = capacity_.nodes().OpenTo(*shape);
    names.insert(open.begin(), open.end());
  }
  names_.assign(names.begin(), names.end());
  for (const std::string& name : names_) {
    nodes_.emplace(name, nodes_.size());
    exists_.push_back(capacity_.nodes().Has(name) ? 1 : 0);
  }
  for (const ShapePtr& shape : shapes) {
    std::vector<std::size_t>& numbers = open_.at(shape->rules);
    if (!numbers.empty()) continue;
    for (const std::string& node : capacity_.nodes().OpenTo(*shape)) {
      numbers.push_back(nodes_.at(node));
    }
  }
}

// What no node has and no needed pod wants has no number, and plays no part.
void Trial::NumberResources(const std::vector<ShapePtr>& shapes) {
  const auto number = [this](const Amounts& amounts) {
    for (const auto& [resource, n] : amounts) resources_.try_emplace(resource, resources_.size());
  };
  for (const ShapePtr& shape : shapes) number(shape->requests);
  for (const auto& [name, amounts] : capacity_.nodes().used()) number(amounts);
  for (std::size_t node = 0; node < names_.size(); ++node) {
    if (exists_[node] != 0) number(capacity_.nodes().AllocatableOf(names_[node]));
  }
}

void Trial::FillIn(const Amounts& amounts, std::size_t node, std::vector<double>* to) const {
  for (const auto& [resource, n] : amounts) {
    (*to)[node * resources_.size() + resources_.at(resource)] = n;
  }
}

const Trial::Numbered& Trial::Number(const Amounts& amounts) {
  const auto [known, is_new] = numbered_.try_emplace(&amounts);
  if (!is_new) return known->second;
  for (const auto& [resource, n] : amounts) {
    const auto number = resources_.find(resource);
    if (number != resources_.end()) known->second.emplace_back(number->second, n);
  }
  return known->second;
}

std::size_t Trial::PodOf(const std::string& uid) {
  const auto [known, is_new] = known_.try_emplace(uid, kNone);
  if (!is_new) return known->second;
  const PlacedPods::Pod* const pod = capacity_.placed().Find(uid);
  if (pod == nullptr) return kNone;
  known->second = pods_.size();
  pods_.push_back({nodes_.at(*pod->node), &Number(*pod->requests)});
  out_.push_back(0);
  return known->second;
}

void Trial::TakeOut(std::size_t pod) {
  if (IsOut(pod)) return;
  out_[pod] = 1;
  double* const used = &used_[pods_[pod].node * resources_.size()];
  for (const auto& [resource, n] : *pods_[pod].requests) {
    used[resource] -= n;
    if (std::abs(used[resource]) < kRounding) used[resource] = 0;
  }
}

void Trial::PutBack(std::size_t pod) {
  if (!IsOut(pod)) return;
  out_[pod] = 0;
  Use(pods_[pod].node, *pods_[pod].requests);
}

void Trial::Use(std::size_t node, const Numbered& requests) {
  double* const used = &used_[node * resources_.size()];
  for (const auto& [resource, n] : requests) used[resource] += n;
}

void Trial::Restore() {
  used_ = used_kept_;
  out_ = out_kept_;
  out_.resize(pods_.size());  // some may have got their numbers since then
}

void Trial::Keep() {
  used_kept_ = used_;
  out_kept_ = out_;
}

bool Trial::Fits(std::size_t node, const Numbered& requests) const {
  return std::all_of(requests.begin(), requests.end(), [&](const auto& request) {
    const auto& [resource, n] = request;
    return n <= 0 || FreeOn(node, resource) >= n - kRounding;
  });
}

bool Trial::IsOverfull(std::size_t node) const {
  if (exists_[node] == 0) return false;
  for (std::size_t resource = 0; resource < resources_.size(); ++resource) {
    if (FreeOn(node, resource) < -kRounding) return true;
  }
  return false;
}

}  // namespace ringmaster::scheduler
