// Where the pods of one shape would fit if jobs had ended: what tells whether keeping room for a
// job that waits can ever help it, and whom it waits for. Pods of others are taken to stay: nobody
// here knows their end.
//
// Pure. Of the moment at which it was made.
#pragma once

#include <map>
#include <string>

#include "operator/scheduler/capacity.h"

namespace ringmaster::scheduler {

class Prospect {
 public:
  Prospect(const Capacity& capacity, const ShapePtr& shape);

  // So many of those that Alone() counts fit on this node.
  int AloneOn(const std::string& node) const;
  // So many pods of the shape fit when no other job has a pod or a place any more.
  int Alone() const { return alone_; }
  // The same beside what this job has.
  int Beside(const std::string& job) const;

 private:
  struct Room {
    Amounts allocatable;
    Amounts used;  // by others than jobs
    int fits = 0;
  };

  ShapePtr shape_;
  std::map<std::string, Room> rooms_;                            // by node
  std::map<std::string, std::map<std::string, Amounts>> taken_;  // by job, by node
  int alone_ = 0;
};

}  // namespace ringmaster::scheduler
