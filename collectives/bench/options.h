// What `ringmaster-bench` is asked to measure.
#pragma once

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
  double model_bytes = 100e6;
  double step_seconds = 0.2;  // computing, without communication
  int servers = 1;            // parameter servers to compare with
};

// Prints help or what is wrong and sets `*exit_code`; then false.
bool ParseOptions(int argc, char** argv, Options* options, int* exit_code);

}  // namespace ringmaster::bench
