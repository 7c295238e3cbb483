#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "tests/gpu/drills.h"
#include "tests/gpu/verdicts.h"

namespace ringmaster::gpu_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLarge = 1 << 20;
constexpr double kMostRatio = 1.02;            // of what is large
constexpr double kMostAddedMicroseconds = 20;  // to what is small
constexpr int kRounds = 20;

// Microseconds, the best; of NCCL with a nonblocking communicator, as ours has, and with a blocking
// one, as frameworks have.
struct Times {
  double ours = 1e12, bare = 1e12, blocking = 1e12;
  double best_bare() const { return std::min(bare, blocking); }
};

// NCCL's own communicators of all ranks.
struct Bare {
  std::unique_ptr<nccl::NcclLink> link;
  nccl::Comm blocking = nullptr;
};

double Microseconds(DrillBoard* board, const std::function<Status()>& call) {
  const auto begin = Clock::now();
  Check(board, call(), "a timed call");
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

Status RunBare(GpuRank& r, const Bare& bare, nccl::Comm comm, const void* in, void* out,
               uint64_t count) {
  const nccl::Patience patience(std::chrono::seconds(300), {});
  const nccl::Result result = r.gpu().nccl->AllReduce(in, out, count, nccl::DataType::kFloat32,
                                                      nccl::kSum, comm, r.stream().get());
  const Status begun = comm == bare.blocking
                           ? StatusOf(r.gpu().nccl.get(), result, comm, "blocking")
                           : bare.link->Settle(result, "bare", patience);
  return begun.ok() ? r.Finish() : begun;
}

// Ours: into a result that is kept, and from there to the output, waited for. NCCL's own: in place
// of the output, waited for in the same way. In turns, so that all meet the same machine.
Times Measure(GpuRank& r, const Bare& bare, const void* in, void* out, size_t bytes) {
  Times times;
  const uint64_t count = bytes / sizeof(float);
  const auto time = [&](double* best, const std::function<Status()>& call) {
    *best = std::min(*best, Microseconds(&r.board(), call));
  };
  for (int i = 0; i < kRounds; ++i) {
    time(&times.ours, [&] { return r.Run(r.AskSum(in, out, count)); });
    time(&times.bare, [&] { return RunBare(r, bare, bare.link->comm(), in, out, count); });
    time(&times.blocking, [&] { return RunBare(r, bare, bare.blocking, in, out, count); });
  }
  return times;
}

bool IsWell(size_t bytes, const Times& times) {
  return bytes >= kLarge ? times.ours <= kMostRatio * times.best_bare()
                         : times.ours <= times.best_bare() + kMostAddedMicroseconds;
}

// All ranks call it.
Status Make(GpuRank& r, Bare* bare) {
  const auto id = [&](nccl::UniqueId* made) {
    if (r.rank() == 0) (void)r.gpu().nccl->GetUniqueId(made);
    return r.host()->Broadcast(made, sizeof(*made), 0);
  };
  nccl::UniqueId first{}, second{};
  if (Status s = id(&first); !s.ok()) return s;
  if (Status s = id(&second); !s.ok()) return s;
  const nccl::Patience patience(std::chrono::seconds(300), {});
  if (Status s = nccl::NcclLink::Init(r.gpu().nccl, r.device(), first, r.size(), r.rank(), patience,
                                      &bare->link);
      !s.ok()) {
    return s;
  }
  nccl::Config config;
  config.blocking = 1;
  const nccl::Result result =
      r.gpu().nccl->CommInitRankConfig(&bare->blocking, r.size(), second, r.rank(), &config);
  return StatusOf(r.gpu().nccl.get(), result, bare->blocking, "a blocking communicator");
}

void PrintRow(size_t bytes, const Times& times, bool judged) {
  const char* const verdict = !judged ? "not judged" : IsWell(bytes, times) ? "well" : "too slow";
  std::printf("| %zu | %.1f | %.1f | %.1f | %.3f | %s |\n", bytes, times.ours, times.bare,
              times.blocking, times.ours / times.best_bare(), verdict);
}

}  // namespace

void CompareWithNccl(GpuRank& r, size_t most_bytes, bool judged) {
  DrillBoard* const board = &r.board();
  Bare bare;
  const Status made = Make(r, &bare);
  Check(board, made, "communicators of its own");
  if (!made.ok()) return;
  const void* in = r.Allocate(most_bytes);
  void* out = r.Allocate(most_bytes);
  if (r.rank() == 0) {
    std::printf(
        "| allreduce of float32, %d rank(s), bytes | Ringmaster, us | bare NCCL, us "
        "| bare and blocking, us | ratio to the faster | verdict |\n|---|---|---|---|---|---|\n",
        r.size());
  }
  for (size_t bytes = 1024; bytes <= most_bytes; bytes *= 4) {
    const Times times = Measure(r, bare, in, out, bytes);
    if (r.rank() != 0) continue;
    PrintRow(bytes, times, judged);
    if (judged && !IsWell(bytes, times))
      Wrong(board, std::to_string(bytes) +
                       " bytes are too slow beside bare NCCL: allowed are 2 % "
                       "from 1 MiB on, and 20 us to what is smaller");
  }
  Check(board, r.host()->Barrier(), "after the comparison");
  const nccl::GivenUp blocking{.comm = bare.blocking, .device = r.device(), .child = nullptr};
  (void)nccl::AbortAll(r.gpu(), {*bare.link->Release(), blocking},
                       nccl::Patience(std::chrono::seconds(30), {}));
}

}  // namespace ringmaster::gpu_test
