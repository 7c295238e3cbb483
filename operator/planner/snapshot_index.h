// Finds pods and sidecars of a snapshot by the uid of their pod in constant time: a plan for a job
// of a thousand pods needs thousands of look-ups.
//
// Valid while the snapshot is unchanged. Private to the planner.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "operator/planner/snapshot.h"

namespace ringmaster::planner {

class SnapshotIndex {
 public:
  explicit SnapshotIndex(const Snapshot& in);

  const PodFacts* Pod(std::string_view uid) const { return At(pods_, uid); }
  const SidecarFacts* Sidecar(std::string_view pod_uid) const { return At(sidecars_, pod_uid); }
  const NodeFacts* Node(std::string_view name) const { return At(nodes_, name); }
  bool IsMember(std::string_view pod_uid) const { return members_.contains(pod_uid); }
  bool IsProvenDead(std::string_view pod_uid) const { return proven_dead_.contains(pod_uid); }
  bool IsAccounted(std::string_view pod_uid) const { return accounted_.contains(pod_uid); }

 private:
  template <typename T>
  using Table = std::unordered_map<std::string_view, const T*>;

  template <typename T>
  static const T* At(const Table<T>& table, std::string_view key) {
    const auto at = table.find(key);
    return at == table.end() ? nullptr : at->second;
  }

  Table<PodFacts> pods_;
  Table<SidecarFacts> sidecars_;
  Table<NodeFacts> nodes_;
  std::unordered_set<std::string_view> members_;
  std::unordered_set<std::string_view> proven_dead_;  // according to the status
  std::unordered_set<std::string_view> accounted_;
};

// While this object exists, look-ups in the snapshot use its index.
class WithIndex {
 public:
  explicit WithIndex(const Snapshot& in) : in_(in), index_(in), before_(in.index) {
    in.index = &index_;
  }
  ~WithIndex() { in_.index = before_; }
  WithIndex(const WithIndex&) = delete;
  WithIndex& operator=(const WithIndex&) = delete;

 private:
  const Snapshot& in_;
  const SnapshotIndex index_;
  const SnapshotIndex* const before_;
};

}  // namespace ringmaster::planner
