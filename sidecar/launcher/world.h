// The world of a view, for processes whose collectives are not ours
// (spec.collectives.backend: None): what each of them finds in its environment.
//
// Plain data, no I/O.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::launcher {

struct World {
  uint64_t epoch = 0;
  std::string view;    // as people see it: 1.7
  std::string reason;  // why there is a new view
  bool train = true;   // false: below minReplicas, so nothing may run
  bool joined = false;
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;       // of this pod's workers
  int group_rank = 0, group_size = 1;       // of the pods, in the order of their first ranks
  std::vector<std::string> addresses = {};  // host:port of each rank
};

// Of the worker with rank `self`, from the view of a `view` frame (docs/contracts.md, section 3).
// Nothing: it is no view with such a rank.
std::optional<World> WorldOf(const nlohmann::json& view, int self);

// NAME=value, for torchrun's scripts, tf.distribute's and Horovod's. `job`: its uid; `starts`: how
// many times the process was started before.
std::vector<std::string> EnvironmentOf(const World& world, const std::string& job, int starts);

}  // namespace ringmaster::launcher
