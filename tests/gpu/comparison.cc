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

struct Times {
  double ours = 1e12, bare = 1e12;  // microseconds, the best
};

double Microseconds(DrillBoard* board, const std::function<Status()>& call) {
  const auto begin = Clock::now();
  Check(board, call(), "a timed call");
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// Ours: into a result that is kept, and from there to the output, waited for. NCCL's own: in place
// of the output, waited for in the same way. In turns, so that both meet the same machine.
Times Measure(GpuRank& r, nccl::NcclLink* link, const nccl::Patience& patience, const void* in,
              void* out, size_t bytes) {
  Times times;
  const uint64_t count = bytes / sizeof(float);
  for (int i = 0; i < kRounds; ++i) {
    times.ours = std::min(
        times.ours, Microseconds(&r.board(), [&] { return r.Run(r.AskSum(in, out, count)); }));
    times.bare = std::min(times.bare, Microseconds(&r.board(), [&] {
                            const nccl::Result result =
                                r.gpu().nccl->AllReduce(in, out, count, nccl::DataType::kFloat32,
                                                        nccl::kSum, link->comm(), r.stream().get());
                            if (Status s = link->Settle(result, "bare", patience); !s.ok())
                              return s;
                            return r.Finish();
                          }));
  }
  return times;
}

bool IsWell(size_t bytes, const Times& times) {
  return bytes >= kLarge ? times.ours <= kMostRatio * times.bare
                         : times.ours <= times.bare + kMostAddedMicroseconds;
}

}  // namespace

void CompareWithNccl(GpuRank& r, size_t most_bytes, bool judged) {
  DrillBoard* const board = &r.board();
  nccl::UniqueId id{};
  if (r.rank() == 0) (void)r.gpu().nccl->GetUniqueId(&id);
  Check(board, r.host()->Broadcast(&id, sizeof(id), 0), "an id");
  std::unique_ptr<nccl::NcclLink> link;
  const nccl::Patience patience(std::chrono::seconds(300), {});
  const Status made = nccl::NcclLink::Init(r.gpu().nccl, id, r.size(), r.rank(), patience, &link);
  Check(board, made, "a communicator of its own");
  if (!made.ok()) return;
  const void* in = r.Allocate(most_bytes);
  void* out = r.Allocate(most_bytes);
  if (r.rank() == 0) {
    std::printf(
        "| allreduce of float32, %d rank(s), bytes | Ringmaster, us | bare NCCL, us | ratio "
        "| verdict |\n|---|---|---|---|---|\n",
        r.size());
  }
  for (size_t bytes = 1024; bytes <= most_bytes; bytes *= 4) {
    const Times times = Measure(r, link.get(), patience, in, out, bytes);
    if (r.rank() != 0) continue;
    const bool well = IsWell(bytes, times);
    std::printf("| %zu | %.1f | %.1f | %.3f | %s |\n", bytes, times.ours, times.bare,
                times.ours / times.bare,
                !judged ? "not judged"
                : well  ? "well"
                        : "too slow");
    if (judged && !well)
      Wrong(board, std::to_string(bytes) +
                       " bytes are too slow beside bare NCCL: allowed are 2 % "
                       "from 1 MiB on, and 20 us to what is smaller");
  }
  Check(board, r.host()->Barrier(), "after the comparison");
  (void)nccl::AbortAll(r.gpu().nccl, {link->Release()}, std::chrono::seconds(30));
}

}  // namespace ringmaster::gpu_test
