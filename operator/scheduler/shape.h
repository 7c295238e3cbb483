// What decides where a pod fits. Pods of one shape find the same nodes open and need the same of
// them, so that what was found out of one holds for all. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/scheduler/amounts.h"

namespace ringmaster::scheduler {

struct Shape {
  Amounts requests;
  Json pod;                                            // spec: what it says of nodes
  std::string rules;                                   // the same, as text
  std::vector<std::pair<std::size_t, double>> wanted;  // requests, by number of the resource
};
using ShapePtr = std::shared_ptr<const Shape>;

// Resources as numbers: there are few, and each look at a node by their names would be dear.
class ResourceNumbers {
 public:
  static constexpr std::size_t kCpu = 0;
  std::size_t Of(const std::string& resource) {
    return numbers_.try_emplace(resource, numbers_.size()).first->second;
  }

 private:
  std::map<std::string, std::size_t> numbers_ = {{"cpu", kCpu}};
};

// Equal shapes are the same object for as long as somebody holds it.
class Shapes {
 public:
  ShapePtr Of(const Json& pod, ResourceNumbers* numbers);
  // The same on nodes with this label alone.
  ShapePtr On(const Shape& shape, const std::string& label, const std::string& value,
              ResourceNumbers* numbers);

 private:
  ShapePtr Find(Json rules, Amounts requests, ResourceNumbers* numbers);

  std::map<std::pair<std::string, Amounts>, std::weak_ptr<const Shape>> known_;
};

}  // namespace ringmaster::scheduler
