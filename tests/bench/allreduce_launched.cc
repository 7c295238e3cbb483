// A rank that an MPI launcher has started: mpirun -np N allreduce_launched SIZES SECONDS. What
// moves the bytes says RINGMASTER_BACKEND: MPI's side and ours of the comparison in allreduce.py.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ringmaster/ringmaster.h"
#include "tests/bench/allreduce_loop.h"

namespace {

void Check(rm_status status) {
  if (status == RM_OK) return;
  std::fprintf(stderr, "%s\n", rm_last_error());
  std::exit(1);
}

void Await(rm_handle handle) {
  Check(rm_wait(handle, 60));
  rm_release(handle);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Check(rm_init(60));
  Check(rm_shutdown_at_exit());
  const auto sizes = ringmaster::bench::SizesFromArgument(argv[1]);
  std::vector<float> data(*std::max_element(sizes.begin(), sizes.end()) / sizeof(float) + 1, 0.0f);
  const auto results = ringmaster::bench::TimeAllreduce(
      sizes, std::atof(argv[2]),
      [] {
        rm_handle handle = 0;
        Check(rm_barrier_async("between rounds", &handle));
        Await(handle);
      },
      [&](size_t count) {
        rm_handle handle = 0;
        const std::string name = "t" + std::to_string(count);
        Check(rm_allreduce_async(name.c_str(), data.data(), data.data(), count, RM_FLOAT32, RM_SUM,
                                 1, 1, &handle));
        Await(handle);
      });
  if (rm_rank() == 0) ringmaster::bench::PrintResults("result", rm_size(), results);
  return 0;
}
