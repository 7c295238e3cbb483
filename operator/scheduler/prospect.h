// Where the pods of one shape would fit if jobs had ended. It tells whether keeping room for a
// waiting job can ever help that job, and for which jobs it waits. Pods that belong to no job are
// assumed to stay: nothing here knows when they end.
//
// Pure. It describes the moment of its construction.
#pragma once

#include <map>
#include <string>

#include "operator/scheduler/capacity.h"

namespace ringmaster::scheduler {

class Prospect {
 public:
  Prospect(const Capacity& capacity, const ShapePtr& shape);

  // How many of the pods that Alone() counts fit on this node.
  int AloneOn(const std::string& node) const;
  // How many pods of the shape fit if no other job has a pod or a held place.
  int Alone() const { return alone_; }
  // How many pods of the shape fit beside the pods of `job` alone.
  int Beside(const std::string& job) const;

 private:
  struct Room {
    Amounts allocatable;
    Amounts used;  // by pods that belong to no job
    int fits = 0;
  };

  ShapePtr shape_;
  std::map<std::string, Room> rooms_;                            // by node
  std::map<std::string, std::map<std::string, Amounts>> taken_;  // by job, by node
  int alone_ = 0;
};

}  // namespace ringmaster::scheduler
