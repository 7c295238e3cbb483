// The Node object of a machine that runs pods as processes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ringmaster::kubelet {

struct NodeFigures {
  std::string name;
  std::string address = "127.0.0.1";
  int cpus = 0;     // allocatable; 0: this machine's, times 64, so that pods without requests fit
  int pods = 1000;  // at a time
};

// Of this machine: its memory, GPUs and boot.
nlohmann::json MakeNode(const NodeFigures& figures);

}  // namespace ringmaster::kubelet
