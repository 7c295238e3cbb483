// The physical limit of the machine for the comparison: bytes moved (read + written) per second by
// `RANKS` processes that copy at once, each walking through a footprint of RANKS x SIZE, as a
// reduction walks through everybody's buffers. copy_limit RANKS SIZES SECONDS
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/bench/allreduce_loop.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int ranks = std::atoi(argv[1]);
  const auto sizes = ringmaster::bench::SizesFromArgument(argv[2]);
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* arrived = new (memory) std::atomic<long>(0);
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() == 0) {
      std::vector<char> data(*std::max_element(sizes.begin(), sizes.end()) * ranks, 1);
      long phase = 0;
      size_t turn = 0;
      const auto results = ringmaster::bench::TimeAllreduce(
          sizes, std::atof(argv[3]),
          [&] {
            arrived->fetch_add(1);
            ++phase;
            while (arrived->load() < phase * ranks) sched_yield();
          },
          [&](size_t count) {  // half is read, half is written: `count` floats of traffic
            const size_t half = count * sizeof(float) / 2;
            char* at = data.data() + (turn++ % ranks) * 2 * half;
            std::memcpy(at, at + half, half);
            asm volatile("" : : "r"(data.data()) : "memory");
          },
          /*until_all=*/true);
      if (rank == 0) ringmaster::bench::PrintResults("result", ranks, results);
      _exit(0);
    }
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed |= status;
  return failed != 0;
}
