// Tries what the nodes would have free if some pods had gone and others had places, many times from
// the same beginning. Nodes, pods and resources have numbers here, because finding them by name
// takes most of the time of a try. The sums are built as those of NodeResources are, so both find
// the same places.
//
// Pure. It describes the capacity at the moment of its construction, and changes nothing there.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operator/scheduler/capacity.h"

namespace ringmaster::scheduler {

class Trial {
 public:
  using Numbered = std::vector<std::pair<std::size_t, double>>;  // by number of the resource
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  // Pods of these shapes are to be placed. The capacity outlives the trial, and does not change.
  Trial(const Capacity& capacity, const std::vector<ShapePtr>& shapes);

  // The pod's number; kNone if it has no node. The uid outlives the trial.
  std::size_t PodOf(const std::string& uid);
  std::size_t NodeOf(std::size_t pod) const { return pods_[pod].node; }
  const Numbered& RequestsOf(std::size_t pod) const { return *pods_[pod].requests; }
  // Of pods of a shape.
  const Numbered& RequestsOf(const Shape& shape) { return Number(shape.requests); }
  // The nodes that are open to pods of a shape. Their numbers are in the order of their names.
  const std::vector<std::size_t>& OpenTo(const Shape& shape) const { return open_.at(shape.rules); }
  const std::string& NameOf(std::size_t node) const { return names_[node]; }
  std::size_t nodes() const { return names_.size(); }
  std::size_t pods() const { return pods_.size(); }

  bool IsOut(std::size_t pod) const { return out_[pod] != 0; }
  void TakeOut(std::size_t pod);
  void PutBack(std::size_t pod);
  void Use(std::size_t node, const Numbered& requests);
  // Comes back to the state in which Keep() was called.
  void Restore();
  void Keep();

  double FreeOn(std::size_t node, std::size_t resource) const {
    const std::size_t at = node * resources_.size() + resource;
    return allocatable_[at] - used_[at];
  }
  double FreeCpuOn(std::size_t node) const { return FreeOn(node, kCpu); }
  bool Fits(std::size_t node, const Numbered& requests) const;
  // As NodeResources has it.
  bool IsOverfull(std::size_t node) const;

 private:
  static constexpr std::size_t kCpu = 0;
  struct Pod {
    std::size_t node;
    const Numbered* requests;
  };

  void NumberNodes(const std::vector<ShapePtr>& shapes);
  void NumberResources(const std::vector<ShapePtr>& shapes);
  void FillIn(const Amounts& amounts, std::size_t node, std::vector<double>* to) const;
  const Numbered& Number(const Amounts& amounts);

  const Capacity& capacity_;
  std::vector<std::string> names_;                           // of the nodes
  std::vector<char> exists_;                                 // by node; others are only remembered
  std::unordered_map<std::string_view, std::size_t> nodes_;  // by name
  std::map<std::string, std::vector<std::size_t>> open_;     // by the node rules of a shape
  std::map<std::string, std::size_t> resources_ = {{"cpu", kCpu}};
  std::unordered_map<const Amounts*, Numbered> numbered_;
  std::vector<Pod> pods_;
  std::unordered_map<std::string_view, std::size_t> known_;  // pods, by uid
  std::vector<double> allocatable_, used_, used_kept_;       // by node, then by resource
  std::vector<char> out_, out_kept_;                         // by pod
};

}  // namespace ringmaster::scheduler
