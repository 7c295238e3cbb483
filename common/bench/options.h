// What `ringmaster-bench` is asked to measure, and its command line. `ringmaster bench` has the
// same options, so that wrong ones are refused before a run is started. Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace ringmaster::bench {

enum class Operation { kAllreduce, kAllgather, kReducescatter, kBroadcast, kAlltoall, kBarrier };
constexpr Operation kOperations[] = {Operation::kAllreduce,     Operation::kAllgather,
                                     Operation::kReducescatter, Operation::kBroadcast,
                                     Operation::kAlltoall,      Operation::kBarrier};
const char* NameOf(Operation operation);

struct Options {
  std::vector<Operation> operations{std::begin(kOperations), std::end(kOperations)};
  std::size_t min_bytes = 1024;
  std::size_t max_bytes = std::size_t{16} << 20;
  double seconds = 0.3;  // for each operation and size
  std::string csv;       // a file; empty: none
  std::size_t model_bytes = 100'000'000;
  double step_ms = 200;  // computing, without communication
  int servers = 1;       // parameter servers to compare with
};

// Declares the options; parsing fills in `options`, which must live until then.
void AddOptions(CLI::App* app, Options* options);

// What is wrong with parsed options that are right one by one; empty: nothing.
std::string WhatIsWrong(const Options& options);

}  // namespace ringmaster::bench
