#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/drills.h"
#include "tests/gpu/verdicts.h"

namespace ringmaster::gpu_test {
namespace {

using Clock = std::chrono::steady_clock;  // the same for all processes

constexpr uint64_t kFloats = 1 << 20;
// For kernels to start and wait; if they haven't, the drill shows less.
constexpr std::chrono::milliseconds kUntilKernelsRun{300};

[[noreturn]] void Die(DrillBoard& board, uint64_t epoch) {
  board.dying_epoch = epoch;
  board.killed_at = Clock::now().time_since_epoch().count();
  (void)raise(SIGKILL);
  std::abort();  // not reached
}

void DieBeforeLaunching(GpuRank& r) {
  while (r.board().in_kernel < r.size() - 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(kUntilKernelsRun);
  Die(r.board(), r.host()->epoch());
}

}  // namespace

void LoseTheLast(GpuRank& r, Death death) {
  DrillBoard& board = r.board();
  const int victim = r.size() - 1, rank = r.rank(), left = r.size() - 1;
  const uint64_t epoch = r.host()->epoch();
  const std::string how =
      death == Death::kInTheMidst ? "in the midst of allreduces" : "before it launched";
  const float* in = r.Upload(std::vector<float>(kFloats, 1));
  float* out = r.Upload(std::vector<float>(kFloats, 0));
  const bool dies = rank == victim;
  if (dies && death == Death::kBeforeItLaunches) DieBeforeLaunching(r);
  std::jthread killer;
  if (dies) {
    killer = std::jthread([&board, epoch] {
      std::this_thread::sleep_for(kUntilKernelsRun);
      Die(board, epoch);
    });
  }
  ++board.in_kernel;
  GpuRank::Asked asked;
  Status status;
  do {
    asked = r.AskSum(in, out, kFloats);
    status = r.Run(asked);
  } while (status.ok());
  if (status.code() != RM_ERR_EPOCH_MOVED)
    Check(&board, status, "an allreduce of which a rank was killed " + how);

  Check(&board, r.Enter(rank, left, epoch + 1), "entering a view");
  if (rank == 0) board.in_kernel = 0;
  Check(&board, r.Run(asked), "the allreduce once more");
  const auto now = Clock::now().time_since_epoch().count();
  Expect(&board, r.Download<float>(out, 4), std::vector<float>(4, static_cast<float>(left)),
         "the allreduce once more");
  if (rank != 0) return;
  const std::chrono::duration<double, std::milli> took = Clock::duration(now - board.killed_at);
  std::printf("a rank of %d killed %s: rank 0 had the others' result %.1f ms later\n", left + 1,
              how.c_str(), took.count());
}

}  // namespace ringmaster::gpu_test
