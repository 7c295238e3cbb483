// What decides where a pod fits. Pods of one shape may run on the same nodes and request the same
// resources, so an answer for one of them holds for all. Pure.
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
  Json pod;                                            // the parts of its spec that choose nodes
  std::string rules;                                   // `pod` as text
  std::vector<std::pair<std::size_t, double>> wanted;  // requests, by number of the resource
};
using ShapePtr = std::shared_ptr<const Shape>;

// Numbers the resources: there are few, and comparing their names at each look at a node would be
// slow.
class ResourceNumbers {
 public:
  static constexpr std::size_t kCpu = 0;
  std::size_t Of(const std::string& resource) {
    return numbers_.try_emplace(resource, numbers_.size()).first->second;
  }

 private:
  std::map<std::string, std::size_t> numbers_ = {{"cpu", kCpu}};
};

// Equal shapes are the same object as long as a ShapePtr to it exists.
class Shapes {
 public:
  ShapePtr Of(const Json& pod);
  // The same shape, restricted to nodes with this value of a label.
  ShapePtr On(const Shape& shape, const std::string& label, const std::string& value);
  // The numbers by which shapes name the resources that their pods want.
  ResourceNumbers& numbers() { return numbers_; }

 private:
  ShapePtr Find(Json rules, Amounts requests);

  ResourceNumbers numbers_;
  std::map<std::pair<std::string, Amounts>, std::weak_ptr<const Shape>> known_;
};

}  // namespace ringmaster::scheduler
