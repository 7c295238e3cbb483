// The hosts of a run with a discovery script, and the state of each on its way to become a node of
// the run's cluster and to leave it. The table decides the next step of each host; HostFollower
// carries it out and reports the result.
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

// A change to a node of the run's cluster.
struct NodeWrite {
  enum class Kind { kCordon, kUncordon, kSetPods, kDelete };
  std::string node;
  Kind kind = Kind::kCordon;
  int pods = 0;  // for kSetPods: how many may run at a time

  bool operator==(const NodeWrite&) const = default;
};

class HostTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // A step that takes time: to inspect the machine, or to make it a node.
  struct Step {
    enum class Kind { kLook, kJoin };
    Kind kind = Kind::kLook;
    Host host;
    int index = 0;    // for kLook: makes the node's name unique
    Machine machine;  // for kJoin
  };

  // `min_slots`: no host is excluded because of failing workers if fewer slots would be left.
  explicit HostTable(int min_slots) : min_slots_(min_slots) {}

  // The script now names these hosts.
  void SetNamed(std::vector<Host> hosts);
  // Returns the steps to begin; each is in progress until Finish. `can_join`: the cluster is ready.
  // `address` is this machine's address for the other machines.
  std::vector<Step> NextSteps(bool can_join, const std::string& address, Time now);
  // The step in progress with this host has ended with `outcome`.
  void Finish(const std::string& host, Machine machine, const Outcome<void>& outcome, Time now);
  // The host has a problem: it is tried again, after a growing pause.
  void Fail(const std::string& host, const std::string& why, Time now);

  // The machines that were inspected and wait to become nodes.
  std::vector<Machine*> Looked();
  bool IsLooking() const;

  // Returns the changes that the cluster's nodes need to match the named hosts.
  std::vector<NodeWrite> Tend(const RunNodes& seen, Time now);
  NodeSlots Slots() const;
  // The newest failure of each host that is not a node of the cluster.
  std::map<std::string, std::string> Troubles() const;
  // The machine of this node, present or former; null if there is none.
  const Machine* MachineOfNode(const std::string& node) const;
  // Returns the messages for people since the last call.
  std::vector<std::string> TakeMessages();

 private:
  enum class Stage { kFailed, kLooking, kLooked, kJoining, kRuns, kLeaves };
  struct Entry {
    Machine machine;
    Stage stage = Stage::kFailed;
    int failures = 0;  // failures in a row
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
  std::vector<Machine> gone_;             // former nodes
  std::set<std::string> left_out_;        // hosts on which workers fail
  std::vector<std::string> messages_;
  int next_index_ = 0;
};

}  // namespace ringmaster::cli
