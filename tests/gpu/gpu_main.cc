// Runs the GPU's backend with ranks as processes, on the GPUs of this machine or on what poses as
// their libraries (collectives/nccl/fake/library): every collective, its times beside NCCL's own,
// and deaths in the middle of allreduces.
//
// Exit status: 0 all is well, 1 something is wrong, 2 bad arguments, 77 there is no GPU to be used.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/drills.h"
#include "tests/gpu/verdicts.h"

namespace ringmaster::gpu_test {
namespace {

constexpr int kNoGpu = 77;
constexpr std::chrono::minutes kPatience{8};
constexpr int kFirstWithManyRanksOnAGpu = 23000;

struct Options {
  int ranks = 1;
  size_t most_bytes = 64 << 20;
  bool judged = true;
};

// NCCL refuses a second rank on a GPU; how it is talked out of that depends on its version. It
// reads both when the first communicator is made.
void AllowSeveralRanksOnAGpu(int version, int rank) {
  if (version >= kFirstWithManyRanksOnAGpu) {
    (void)setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  } else {
    (void)setenv("NCCL_HOSTID", ("ringmaster-rank-" + std::to_string(rank)).c_str(), 1);
  }
  (void)setenv("NCCL_MAX_CTAS", "1", 0);  // ranks on one GPU must all find room on it
}

// In a process of its own, which alone has loaded the libraries: the exit status.
int Probe(DrillBoard* board) {
  const nccl::Gpu gpu = nccl::ThisMachinesGpu();
  if (const Status s = gpu.Check(); !s.ok()) {
    std::printf("SKIPPED  no GPU to be used: %s\n", s.message().c_str());
    return kNoGpu;
  }
  board->nccl = gpu.nccl->version();
  board->cuda = gpu.cuda->version();
  board->devices = gpu.devices;
  return 0;
}

// The times of one rank, for which NCCL copies once and we copy twice, and of ranks that share a
// GPU say nothing about a job's.
bool MeansSomething(const Options& options, const nccl::Gpu& gpu) {
  return options.ranks > 1 && options.ranks <= gpu.devices;
}

int RunRank(DrillBoard* board, const Options& options, int rank) {
  const nccl::Gpu gpu = nccl::ThisMachinesGpu();
  if (options.ranks > gpu.devices) AllowSeveralRanksOnAGpu(gpu.nccl->version(), rank);
  GpuRank r(board, gpu, rank % gpu.devices, nccl::WaitLimits());
  if (options.ranks > 1) {
    EnterBesideACommunicator(r, rank, options.ranks);
  } else {
    Check(board, r.Enter(rank, options.ranks, 1), "entering a view");
  }
  TryCollectives(r);
  TryStreams(r);
  CompareWithNccl(r, options.most_bytes, options.judged && MeansSomething(options, gpu));
  for (const Death death : {Death::kBeforeItLaunches, Death::kInTheMidst}) {
    if (r.size() > 1) LoseTheLast(r, death);
  }
  return 0;
}

template <typename Body>
pid_t Start(const Body& body) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  const int status = body();
  std::fflush(nullptr);
  _exit(status);  // what CUDA would do at exit() is nobody's business here
}

// As the sidecars of a job do: who is killed ends the view, and the others get to know.
void Supervise(DrillBoard* board, std::vector<pid_t> ranks) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  size_t left = ranks.size();
  while (left > 0) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid > 0) {
      --left;
      if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && board->killed_at != 0) {
        board->aborted_epoch = board->dying_epoch.load();
      } else if (status != 0) {
        Wrong(board,
              "process " + std::to_string(pid) + " ended with status " + std::to_string(status));
        board->aborted_epoch = kMostViews;
      }
      continue;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      Wrong(board, "the ranks have not ended within 8 minutes");
      for (pid_t rank : ranks) (void)kill(rank, SIGKILL);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int Run(const Options& options) {
  DrillBoard* const board = DrillBoard::Map();
  if (board == nullptr) {
    std::perror("mmap");
    return 1;
  }
  int probed = 0;
  const pid_t probe = Start([&] { return Probe(board); });
  if (waitpid(probe, &probed, 0) != probe || !WIFEXITED(probed)) return 1;
  if (WEXITSTATUS(probed) != 0) return WEXITSTATUS(probed);
  std::printf("NCCL %d, CUDA runtime %d, %d GPU(s), %d rank(s)\n\n", board->nccl.load(),
              board->cuda.load(), board->devices.load(), options.ranks);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < options.ranks; ++rank) {
    ranks.push_back(Start([&, rank] { return RunRank(board, options, rank); }));
  }
  Supervise(board, ranks);
  std::printf("\n%s\n", board->wrong == 0 ? "all is well" : "something is wrong, see above");
  return board->wrong == 0 ? 0 : 1;
}

int Usage() {
  std::fprintf(stderr,
               "usage: ringmaster_gpu_test [--ranks N] [--most-bytes N] [--judged 0|1]\n"
               "  --ranks       1 to %d, by default 1\n"
               "  --most-bytes  of the comparison with bare NCCL, from 1024, by default 64 MiB\n"
               "  --judged      0: slower than is allowed is not wrong; nor is it with one rank, "
               "or with ranks that share a GPU\n",
               kMostRanks);
  return 2;
}

}  // namespace
}  // namespace ringmaster::gpu_test

int main(int argc, char** argv) {
  ringmaster::gpu_test::Options options;
  long most_bytes = static_cast<long>(options.most_bytes);
  if (argc % 2 == 0) return ringmaster::gpu_test::Usage();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--ranks") {
      options.ranks = std::atoi(argv[i + 1]);
    } else if (name == "--most-bytes") {
      most_bytes = std::atol(argv[i + 1]);
    } else if (name == "--judged") {
      options.judged = std::atoi(argv[i + 1]) != 0;
    } else {
      return ringmaster::gpu_test::Usage();
    }
  }
  if (options.ranks < 1 || options.ranks > ringmaster::gpu_test::kMostRanks || most_bytes < 1024)
    return ringmaster::gpu_test::Usage();
  options.most_bytes = static_cast<size_t>(most_bytes);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // lines of several processes
  return ringmaster::gpu_test::Run(options);
}
