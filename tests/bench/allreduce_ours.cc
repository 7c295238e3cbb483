// Our communicator's side of the comparison: allreduce_ours RANKS SIZES SECONDS
// in-place|apart|arena|tcp|encrypted|engine|engine-apart Forks its ranks; they tell each other
// their addresses through anonymous shared memory. "apart": in != out; "engine": named tensors
// through the engine, in == out, in ordinary memory; "engine-apart": the same, in != out.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ringmaster/communicator.h"
#include "tests/bench/allreduce_loop.h"
#include "tests/bench/engine_rank.h"

namespace {

using ringmaster::Communicator;
using ringmaster::Endpoint;
using ringmaster::Status;

constexpr int kMaxRanks = 64;

struct Board {
  std::atomic<int> written{0};
  struct {
    char tcp[64];
    char shm[108];
  } address[kMaxRanks];
};

[[noreturn]] void Die(const char* what, const Status& status) {
  std::fprintf(stderr, "allreduce_ours: %s: %s\n", what, status.message().c_str());
  _exit(1);
}

void RunEngine(Endpoint* endpoint, const ringmaster::CommunicatorOptions& options,
               const std::vector<size_t>& sizes, double seconds, bool apart) {
  ringmaster::bench::EngineRank engine(endpoint, options);
  if (Status s = engine.AwaitEntered(); !s.ok()) Die("engine", s);
  const size_t floats = *std::max_element(sizes.begin(), sizes.end()) / sizeof(float) + 1;
  std::vector<float> in(floats, 0.0f), beside(apart ? floats : 0, 0.0f);
  float* out = apart ? beside.data() : in.data();
  const auto barrier = [&] {
    if (Status s = engine.Barrier(); !s.ok()) Die("barrier", s);
  };
  const auto results = ringmaster::bench::TimeAllreduce(sizes, seconds, barrier, [&](size_t count) {
    if (Status s = engine.Allreduce(in.data(), out, count); !s.ok()) Die("allreduce", s);
  });
  if (options.rank == 0) {
    ringmaster::bench::PrintResults("result", static_cast<int>(options.peers.size()), results);
  }
  barrier();
}

void RunRank(Board* board, int rank, int ranks, const std::vector<size_t>& sizes, double seconds,
             const std::string& mode) {
  const size_t largest = *std::max_element(sizes.begin(), sizes.end());
  Endpoint::Options endpoint_options;
  endpoint_options.job = "bench";
  const bool over_tcp = mode == "tcp" || mode == "encrypted";
  endpoint_options.shared_memory = !over_tcp;
  endpoint_options.encrypt = mode == "encrypted";
  if (endpoint_options.encrypt) endpoint_options.key.assign(32, 'k');
  if (mode == "arena") endpoint_options.arena_bytes = largest + (64u << 20);
  std::unique_ptr<Endpoint> endpoint;
  if (Status s = Endpoint::Create(endpoint_options, &endpoint); !s.ok()) Die("endpoint", s);

  std::snprintf(board->address[rank].tcp, sizeof board->address[rank].tcp, "%s",
                endpoint->Address().tcp.c_str());
  std::snprintf(board->address[rank].shm, sizeof board->address[rank].shm, "%s",
                endpoint->Address().shm.c_str());
  board->written.fetch_add(1);
  while (board->written.load() < ranks) usleep(1000);

  ringmaster::CommunicatorOptions options;
  options.epoch = (uint64_t{1} << 40) | 1;
  options.rank = rank;
  options.allow_shm = !over_tcp;
  for (int i = 0; i < ranks; ++i)
    options.peers.push_back({board->address[i].tcp, board->address[i].shm, 0});
  if (mode.starts_with("engine")) {
    return RunEngine(endpoint.get(), options, sizes, seconds, mode == "engine-apart");
  }
  std::unique_ptr<Communicator> communicator;
  if (Status s = Communicator::Create(endpoint.get(), options, &communicator); !s.ok())
    Die("communicator", s);

  std::vector<float> own, beside;
  float* data = nullptr;
  if (mode == "arena") {
    auto memory = communicator->ArenaBuffer(largest);
    if (memory.empty()) Die("arena", Status(RM_ERR_UNAVAILABLE, "no arena of that size"));
    data = reinterpret_cast<float*>(memory.data());
    std::memset(data, 0, largest);
  } else {
    own.assign(largest / sizeof(float) + 1, 0.0f);
    data = own.data();
  }
  if (mode == "apart") beside.assign(own.size(), 0.0f);
  float* const out = mode == "apart" ? beside.data() : data;
  const auto results = ringmaster::bench::TimeAllreduce(
      sizes, seconds,
      [&] {
        if (Status s = communicator->Barrier(); !s.ok()) Die("barrier", s);
      },
      [&](size_t count) {
        if (Status s = communicator->Allreduce(data, out, count, RM_FLOAT32, RM_SUM); !s.ok())
          Die("allreduce", s);
      });
  if (rank == 0) ringmaster::bench::PrintResults("result", ranks, results);
  (void)communicator->Barrier();
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc == 5 ? std::atoi(argv[1]) : 0;
  if (ranks < 1 || ranks > kMaxRanks) {
    std::fprintf(stderr,
                 "usage: allreduce_ours RANKS(1..64) SIZES SECONDS "
                 "in-place|apart|arena|tcp|encrypted|engine|engine-apart\n");
    return 2;
  }
  const auto sizes = ringmaster::bench::SizesFromArgument(argv[2]);
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 3;
  auto* board = new (memory) Board;
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      RunRank(board, rank, ranks, sizes, std::atof(argv[3]), argv[4]);
      _exit(0);
    }
  }
  int failed = 0, status = 0;
  while (wait(&status) > 0) failed |= status;
  return failed != 0;
}
