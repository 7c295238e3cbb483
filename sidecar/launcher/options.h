// The launcher's options, from the environment and the command line (docs/contracts.md, section 1).
#pragma once

#include <chrono>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "common/failure_policy/failure_policy.h"

namespace ringmaster::launcher {

struct Options {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=value, handed on to the workers
  std::string job;                       // its uid
  std::string socket;              // of the sidecar; empty: none, workers only run and are watched
  std::string bind = "127.0.0.1";  // where the workers listen
  std::string output_dir;          // what each worker prints is kept there; empty: only in the log
  int slots = 1;
  int standbys = 0;
  bool foreign = false;  // the workers' collectives are not ours (spec.collectives.backend: None)
  // By slot: what the worker there finds in CUDA_VISIBLE_DEVICES; empty: what the container has.
  std::vector<std::string> own_gpus;
  int replica_index = 0;
  int replicas = 1;
  std::chrono::seconds grace{30};           // of the pod
  std::vector<failure_policy::Rule> rules;  // spec.failurePolicy
};

// The error is one message for people. `environment` is the process's own (environ).
tl::expected<Options, std::string> ParseOptions(int argc, char** argv, char** environment);

}  // namespace ringmaster::launcher
