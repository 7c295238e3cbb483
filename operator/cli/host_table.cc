#include "operator/cli/host_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "operator/cli/run_address.h"

namespace ringmaster::cli {
namespace {

// A host that fails is tried again soon; from the third failure on it is excluded for growing
// pauses.
constexpr int kFailuresToLeaveOut = 3;
constexpr std::chrono::seconds kSoon{1}, kShortestPause{10}, kLongestPause{300};
// After a node has run for this long, its failures are forgotten.
constexpr std::chrono::seconds kProven{60};
// A list of nodes may be this much older than a node.
constexpr std::chrono::seconds kOldList{5};

std::chrono::seconds PauseAfter(int failures) {
  if (failures < kFailuresToLeaveOut) return kSoon;
  const int doublings = std::min(failures - kFailuresToLeaveOut, 5);
  return std::min(kLongestPause, kShortestPause * (1 << doublings));
}

}  // namespace

void HostTable::SetNamed(std::vector<Host> hosts) { named_ = std::move(hosts); }

const Host* HostTable::Named(const std::string& name) const {
  const auto found = std::find_if(named_.begin(), named_.end(),
                                  [&](const Host& host) { return host.name == name; });
  return found == named_.end() ? nullptr : &*found;
}

void HostTable::ForgetUnnamed() {
  std::erase_if(entries_, [this](const auto& entry) {
    const Stage stage = entry.second.stage;
    return (stage == Stage::kFailed || stage == Stage::kLooked) && Named(entry.first) == nullptr;
  });
}

std::vector<HostTable::Step> HostTable::NextSteps(bool can_join, const std::string& address,
                                                  Time now) {
  ForgetUnnamed();
  std::vector<Step> steps;
  for (const Host& host : named_) {
    Entry& entry = entries_[host.name];
    if (entry.stage == Stage::kFailed && now >= entry.retry_at) {
      entry.machine = {.host = host};
      entry.stage = Stage::kLooking;
      steps.push_back({.kind = Step::Kind::kLook, .host = host, .index = next_index_++});
    } else if (entry.stage == Stage::kLooked && can_join) {
      entry.machine.pods = host.slots;
      if (const auto given = GiveAddress(address, &entry.machine); !given) {
        Fail(host.name, given.error().message, now);
        continue;
      }
      if (!entry.machine.has_programs) messages_.push_back("bringing the programs to " + host.name);
      entry.stage = Stage::kJoining;
      steps.push_back({.kind = Step::Kind::kJoin, .host = host, .machine = entry.machine});
    }
  }
  return steps;
}

void HostTable::Finish(const std::string& host, Machine machine, const Outcome<void>& outcome,
                       Time now) {
  Entry& entry = entries_.at(host);
  entry.machine = std::move(machine);
  if (!outcome) return Fail(host, outcome.error().message, now);
  const bool joined = entry.stage == Stage::kJoining;
  entry.stage = joined ? Stage::kRuns : Stage::kLooked;
  if (!joined) return;
  entry.running_since = now;
  entry.said.clear();
  messages_.push_back(fmt::format("host {} has joined, slots: {}", host, entry.machine.pods));
}

void HostTable::Fail(const std::string& host, const std::string& why, Time now) {
  Entry& entry = entries_.at(host);
  entry.stage = Stage::kFailed;
  const std::chrono::seconds pause = PauseAfter(++entry.failures);
  entry.retry_at = now + pause;
  if (why != entry.said) messages_.push_back(fmt::format("host {}: {}", host, why));
  entry.said = why;
  if (entry.failures == kFailuresToLeaveOut) {
    messages_.push_back(
        fmt::format("host {} has failed {} times: it is left out for {} s, then for longer", host,
                    entry.failures, pause.count()));
  }
}

std::vector<Machine*> HostTable::Looked() {
  std::vector<Machine*> looked;
  for (const Host& host : named_) {
    const auto entry = entries_.find(host.name);
    if (entry != entries_.end() && entry->second.stage == Stage::kLooked)
      looked.push_back(&entry->second.machine);
  }
  return looked;
}

bool HostTable::IsLooking() const {
  return std::any_of(entries_.begin(), entries_.end(), [this](const auto& entry) {
    return entry.second.stage == Stage::kLooking && Named(entry.first) != nullptr;
  });
}

std::vector<NodeWrite> HostTable::Tend(const RunNodes& seen, Time now) {
  std::vector<NodeWrite> writes;
  DeleteUnknown(seen, &writes);
  LeaveOutTroubled(seen);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const bool is_node = it->second.stage == Stage::kRuns || it->second.stage == Stage::kLeaves;
    if (is_node && TendNode(seen, now, &it->second, &writes)) {
      gone_.push_back(it->second.machine);
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  return writes;
}

// Deletes nodes that were started by an attempt that nevertheless failed: their host has another
// node, or will get one.
void HostTable::DeleteUnknown(const RunNodes& seen, std::vector<NodeWrite>* writes) const {
  std::set<std::string> known;
  for (const auto& [host, entry] : entries_)
    if (entry.stage != Stage::kFailed) known.insert(entry.machine.node);
  for (const auto& [name, node] : seen.nodes)
    if (known.count(name) == 0 && !node.deleting)
      writes->push_back({name, NodeWrite::Kind::kDelete});
}

// Excludes hosts on which workers fail repeatedly, as long as the others have enough slots.
void HostTable::LeaveOutTroubled(const RunNodes& seen) {
  std::set<std::string> left_out;
  int slots = 0;
  for (const auto& [name, entry] : entries_) {
    if (entry.stage != Stage::kRuns || Named(name) == nullptr) continue;
    if (seen.troubled.count(entry.machine.node) != 0)
      left_out.insert(name);
    else
      slots += entry.machine.pods;
  }
  if (slots < min_slots_) left_out.clear();
  for (const std::string& name : left_out)
    if (left_out_.count(name) == 0)
      messages_.push_back(fmt::format("host {} is left out for a while: workers fail on it", name));
  for (const std::string& name : left_out_)
    if (left_out.count(name) == 0)
      messages_.push_back(fmt::format("host {} is no longer left out", name));
  left_out_ = std::move(left_out);
}

// Returns true if the host is no longer named and its node was released.
bool HostTable::TendNode(const RunNodes& seen, Time now, Entry* entry,
                         std::vector<NodeWrite>* writes) {
  Machine& machine = entry->machine;
  const std::string host = machine.host.name;
  const Host* named = Named(host);
  const auto node = seen.nodes.find(machine.node);
  if (node == seen.nodes.end()) {
    if (now - entry->running_since < kOldList) return false;
    if (named != nullptr) Fail(host, "its node process has ended", now);
    return named == nullptr;
  }
  if (entry->failures > 0 && now - entry->running_since >= kProven) entry->failures = 0;
  FollowNaming(entry, named != nullptr);
  // The operator drains those pods of a cordoned node that are not needed there.
  const bool cordon = named == nullptr || left_out_.count(host) != 0;
  if (cordon != node->second.cordoned) {
    writes->push_back(
        {machine.node, cordon ? NodeWrite::Kind::kCordon : NodeWrite::Kind::kUncordon});
    return false;
  }
  if (named == nullptr) {
    const bool has_pods = std::any_of(seen.pods.begin(), seen.pods.end(),
                                      [&](const PodSeen& pod) { return pod.node == machine.node; });
    if (has_pods) return false;
    messages_.push_back(fmt::format("host {} is let go", host));
    writes->push_back({machine.node, NodeWrite::Kind::kDelete});
    return true;
  }
  if (node->second.pods != std::to_string(named->slots))
    writes->push_back({machine.node, NodeWrite::Kind::kSetPods, named->slots});
  machine.pods = named->slots;
  return false;
}

void HostTable::FollowNaming(Entry* entry, bool named) {
  const std::string& host = entry->machine.host.name;
  if (!named && entry->stage == Stage::kRuns) {
    messages_.push_back(fmt::format("host {} is no longer named: its workers leave", host));
    entry->stage = Stage::kLeaves;
  } else if (named && entry->stage == Stage::kLeaves) {
    messages_.push_back(fmt::format("host {} is named again", host));
    entry->stage = Stage::kRuns;
  }
}

NodeSlots HostTable::Slots() const {
  NodeSlots slots;
  for (const auto& [name, entry] : entries_) {
    const std::string& node = entry.machine.node;
    if (entry.stage == Stage::kRuns && left_out_.count(name) == 0)
      slots.offered[node] = entry.machine.pods;
    else if (!node.empty())
      slots.closed.insert(node);
  }
  return slots;
}

std::map<std::string, std::string> HostTable::Troubles() const {
  std::map<std::string, std::string> troubles;
  for (const auto& [name, entry] : entries_)
    if (entry.stage == Stage::kFailed && !entry.said.empty()) troubles[name] = entry.said;
  return troubles;
}

const Machine* HostTable::MachineOfNode(const std::string& node) const {
  for (const Machine& machine : gone_)
    if (machine.node == node) return &machine;
  for (const auto& [name, entry] : entries_)
    if (entry.machine.node == node && entry.machine.pid != 0) return &entry.machine;
  return nullptr;
}

std::vector<std::string> HostTable::TakeMessages() { return std::exchange(messages_, {}); }

}  // namespace ringmaster::cli
