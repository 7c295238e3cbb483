// The hosts of a run as a discovery script names them, and how far each of them is on its way to be
// a node of the run's cluster and off it again. The table decides what is done next with each host;
// HostFollower does it, and says how it went.
//
// Pure. Thread rule: one thread.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/cli/host_scaling.h"
#include "operator/cli/hosts.h"
#include "operator/cli/machine.h"
#include "operator/cli/outcome.h"
#include "operator/cli/run_nodes.h"

namespace ringmaster::cli {

// What is to be written to a node of the run's cluster.
struct NodeWrite {
  enum class Kind { kCordon, kUncordon, kSetPods, kDelete };
  std::string node;
  Kind kind = Kind::kCordon;
  int pods = 0;  // of kSetPods: how many may run there at a time

  bool operator==(const NodeWrite&) const = default;
};

class HostTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // A step that takes its time: the machine is looked at, or made a node.
  struct Step {
    enum class Kind { kLook, kJoin };
    Kind kind = Kind::kLook;
    Host host;
    int index = 0;    // of kLook: what makes the node's name unique
    Machine machine;  // of kJoin
  };

  // `min_slots`: with fewer no host is left out because workers fail on it.
  explicit HostTable(int min_slots) : min_slots_(min_slots) {}

  // The script names these now.
  void SetNamed(std::vector<Host> hosts);
  // Which steps to begin; each is under way until Finish. `can_join`: the cluster is served;
  // `address`: of this machine, for the others.
  std::vector<Step> NextSteps(bool can_join, const std::string& address, Time now);
  // The step that was under way with this host has ended so.
  void Finish(const std::string& host, Machine machine, const Outcome<void>& outcome, Time now);
  // Something is wrong with the host: it is tried again, after a longer pause each time.
  void Fail(const std::string& host, const std::string& why, Time now);

  // Those that have been looked at and wait to be made nodes.
  std::vector<Machine*> Looked();
  bool IsLooking() const;

  // Brings the cluster's nodes in line with what is named.
  std::vector<NodeWrite> Tend(const RunNodes& seen, Time now);
  NodeSlots Slots() const;
  // The newest failure of each host that is none of the cluster's.
  std::map<std::string, std::string> Troubles() const;
  // The machine that is or was this node; null: none.
  const Machine* MachineOfNode(const std::string& node) const;
  // Lines for people since the last call.
  std::vector<std::string> TakeMessages();

 private:
  enum class Stage { kFailed, kLooking, kLooked, kJoining, kRuns, kLeaves };
  struct Entry {
    Machine machine;
    Stage stage = Stage::kFailed;
    int failures = 0;  // one after the other
    Time retry_at{}, running_since{};
    std::string said;  // of the newest failure
  };

  void ForgetUnnamed();
  void DeleteUnknown(const RunNodes& seen, std::vector<NodeWrite>* writes) const;
  void LeaveOutTroubled(const RunNodes& seen);
  bool TendNode(const RunNodes& seen, Time now, Entry* entry, std::vector<NodeWrite>* writes);
  void FollowNaming(Entry* entry, bool named);
  const Host* Named(const std::string& name) const;

  const int min_slots_;
  std::vector<Host> named_;
  std::map<std::string, Entry> entries_;  // by the host's name
  std::vector<Machine> gone_;             // nodes that were let go
  std::set<std::string> left_out_;        // hosts on which workers fail
  std::vector<std::string> messages_;
  int next_index_ = 0;
};

}  // namespace ringmaster::cli
