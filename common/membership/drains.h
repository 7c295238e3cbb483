// Which pods leave by plan, and by when this one must have left (rule 12).
//
// Owned by MemberImpl; used by the member's thread only.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/membership/config.h"
#include "common/membership/event.h"
#include "common/membership/view.h"

namespace ringmaster::membership {

class Drains {
 public:
  explicit Drains(std::string self) : self_(std::move(self)) {}

  void Request(const DrainRequested& request);
  void Add(const std::vector<std::string>& pods) { pods_.insert(pods.begin(), pods.end()); }
  bool Contains(const std::string& pod) const { return pods_.contains(pod); }
  bool draining() const { return pods_.contains(self_); }
  // The pods of `view` that leave, in the order of their uids.
  std::vector<std::string> LeavingPods(const View& view) const;

  // Call with each new view. `in_view`: this pod is in it.
  void EnterView(bool in_view);
  // Takes out the other pods that are not in `view` any more and so have left, and returns them.
  std::vector<std::string> TakeDeparted(const View& view);
  // Out of the job by plan, until a member that has not heard of it lets this pod in again.
  bool left() const { return left_; }

  // This pod's deadline; none once it has passed in the current view.
  std::optional<TimePoint> NextDeadline() const;
  // True once in each view, when the deadline has passed.
  bool Expire(TimePoint now);
  bool expired() const { return expired_; }

 private:
  std::string self_;  // constant after construction
  std::set<std::string> pods_;
  std::optional<TimePoint> deadline_;
  bool left_ = false;
  bool expired_ = false;  // in the current view
};

}  // namespace ringmaster::membership
