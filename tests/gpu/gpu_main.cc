// Runs the GPU's backend with ranks as threads, on a real GPU or (--fake) on the fake one: every
// collective, a death in the middle of one, and its times beside NCCL's own.
//
// Exit status: 0 all is well, 1 something is wrong, 2 bad arguments, 77 there is no GPU to be used.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "collectives/nccl/fake/fake_gpu.h"
#include "tests/gpu/gpu_rank.h"

namespace ringmaster::gpu_test {
namespace {

using engine::Kind;
using engine::Request;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kFirstView = 1;
std::atomic<int> wrong{0};

void Check(const Status& status, const std::string& what) {
  if (status.ok()) return;
  ++wrong;
  std::printf("WRONG  %s: %s\n", what.c_str(), status.message().c_str());
}

template <typename T>
void Expect(const std::vector<T>& is, const std::vector<T>& should, const std::string& what) {
  if (is == should) return;
  ++wrong;
  std::printf("WRONG  %s: %zu values, the first is %g, expected are %zu, the first %g\n",
              what.c_str(), is.size(), is.empty() ? 0 : static_cast<double>(is[0]), should.size(),
              should.empty() ? 0 : static_cast<double>(should[0]));
}

using Ranks = std::vector<std::unique_ptr<GpuRank>>;

void OnEach(Ranks& ranks, int first, const std::function<void(GpuRank&, int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < first; ++i)
    threads.emplace_back([&, i] {
      Check(ranks[i]->Use(), "using the device");
      body(*ranks[i], i);
    });
  for (auto& thread : threads) thread.join();
}

// A view of the first `size` ranks.
void Enter(Ranks& ranks, int size, uint64_t epoch) {
  const auto meeting = std::make_shared<Meeting>(size);
  OnEach(ranks, size,
         [&](GpuRank& r, int i) { Check(r.Enter(meeting, i, epoch), "entering a view"); });
}

void TryReductions(GpuRank& r) {
  const float n = static_cast<float>(r.size());
  const float all = n * (n + 1) / 2;  // of rank + 1
  const auto reduce = [&](rm_op op, double prescale, double postscale, float expected) {
    float* data = r.Upload(std::vector<float>(1000, static_cast<float>(r.rank() + 1)));
    const auto asked =
        r.Ask({"x", Kind::kAllreduce, RM_FLOAT32, op, "", 1000, prescale, postscale}, data, data);
    const std::string what = "allreduce with operation " + std::to_string(op);
    Check(r.Run(asked), what);
    Expect(r.Download<float>(data, 1000), std::vector<float>(1000, expected), what);
  };
  reduce(RM_SUM, 1, 1, all);
  reduce(RM_SUM, 0.5, 4, 2 * all);
  reduce(RM_AVERAGE, 1, 1, all / n);
  reduce(RM_MIN, 1, 1, 1);
  reduce(RM_MAX, 1, 1, n);
}

void TryTheOthers(GpuRank& r) {
  const int n = r.size(), own = r.rank();
  std::vector<int32_t> gathered, exchanged;
  for (int rank = 0; rank < n; ++rank) gathered.insert(gathered.end(), rank + 1, rank);
  for (int rank = 0; rank < n; ++rank) exchanged.insert(exchanged.end(), own + 1, 10 * rank + own);
  const size_t rows = static_cast<size_t>(own) + 1;
  const auto gather = r.Ask({"g", Kind::kAllgather, RM_INT32, RM_SUM, "", 1, 1, 1},
                            r.Upload(std::vector<int32_t>(rows, own)), nullptr, rows);
  Check(r.Run(gather), "allgather");
  if (gather->gathered != nullptr) {
    Expect(r.Download<int32_t>(gather->gathered->data(), gathered.size()), gathered, "allgather");
  }

  int32_t* sent = r.Upload(std::vector<int32_t>(5, own));
  const auto broadcast =
      r.Ask({"b", Kind::kBroadcast, RM_INT32, RM_SUM, "worker 0", 5, 1, 1}, sent, sent);
  Check(r.Run(broadcast, n - 1), "broadcast");
  Expect(r.Download<int32_t>(sent, 5), std::vector<int32_t>(5, n - 1), "broadcast");

  Request request{"s", Kind::kReducescatter, RM_FLOAT32, RM_SUM, "", static_cast<uint64_t>(n) + 1};
  const auto scatter = r.Ask(request, r.Upload(std::vector<float>(n + 1, 1)), nullptr);
  Check(r.Run(scatter), "reducescatter");
  const size_t share = own == 0 ? 2 : 1;
  if (scatter->gathered != nullptr) {
    Expect(r.Download<float>(scatter->gathered->data(), share),
           std::vector<float>(share, static_cast<float>(n)), "reducescatter");
  }

  std::vector<int32_t> to_each;
  engine::Operation::Splits splits;
  for (int to = 0; to < n; ++to) {
    to_each.insert(to_each.end(), to + 1, 10 * own + to);
    splits.rows.push_back(static_cast<uint64_t>(to) + 1);
    splits.workers.push_back("worker " + std::to_string(to));
  }
  const size_t given = to_each.size();
  const auto exchange = r.Ask({"e", Kind::kAlltoall, RM_INT32, RM_SUM, "", 1, 1, 1},
                              r.Upload(to_each), nullptr, given, splits);
  Check(r.Run(exchange), "alltoall");
  if (exchange->gathered != nullptr) {
    Expect(r.Download<int32_t>(exchange->gathered->data(), exchanged.size()), exchanged,
           "alltoall");
  }
}

// The last rank never comes to an allreduce of which the others' kernels run; they have a view of
// their own then, and run it again.
void LoseOne(Ranks& ranks, uint64_t epoch) {
  const int n = static_cast<int>(ranks.size());
  std::atomic<int> launching{0};
  std::vector<float*> data(n);
  std::vector<GpuRank::Asked> asked(n);
  OnEach(ranks, n - 1, [&](GpuRank& r, int i) {
    data[i] = r.Upload(std::vector<float>(1 << 20, 1));
    asked[i] =
        r.Ask({"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1 << 20, 1, 1}, data[i], data[i]);
  });
  std::thread stop([&] {
    while (launching < n - 1) std::this_thread::yield();
    // The kernels are given time to start and wait; if they haven't, the test shows less.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (auto& rank : ranks) rank->Abort(epoch);
  });
  OnEach(ranks, n - 1, [&](GpuRank& r, int i) {
    ++launching;
    if (const Status s = r.Run(asked[i]); s.code() != RM_ERR_EPOCH_MOVED) {
      Check({RM_ERR_INTERNAL, "ended with code " + std::to_string(s.code()) + " " + s.message()},
            "an allreduce without one rank");
    }
  });
  stop.join();
  const auto begin = Clock::now();
  std::thread dead([&] { ranks[n - 1]->Leave(); });
  Enter(ranks, n - 1, epoch + 1);
  OnEach(ranks, n - 1, [&](GpuRank& r, int i) {
    Check(r.Run(asked[i]), "the allreduce once more");
    Expect(r.Download<float>(data[i], 4), std::vector<float>(4, static_cast<float>(n - 1)),
           "the allreduce once more");
  });
  dead.join();
  const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
  std::printf("a rank lost in a kernel of %d ranks: the others had their result %.1f ms later\n", n,
              took.count());
}

// Microseconds a call, the best of some.
double Best(int rounds, const std::function<Status()>& call) {
  double best = 1e12;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = Clock::now();
    Check(call(), "a timed call");
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    best = std::min(best, took.count());
  }
  return best;
}

// Ours: into a result that is kept, and from there to the output, waited for. NCCL's own: in place
// of the output, waited for in the same way.
void Compare(Ranks& ranks, uint64_t epoch, size_t most_bytes) {
  const int n = static_cast<int>(ranks.size());
  Enter(ranks, n, epoch);
  std::vector<double> ours(64), bare(64);
  OnEach(ranks, n, [&](GpuRank& r, int i) {
    nccl::UniqueId id{};
    if (i == 0) (void)r.gpu().nccl->GetUniqueId(&id);
    Check(r.host()->Broadcast(&id, sizeof(id), 0), "an id");
    std::unique_ptr<nccl::NcclLink> link;
    const nccl::Patience patience(std::chrono::seconds(120), {});
    const Status made = nccl::NcclLink::Init(r.gpu().nccl, id, n, i, patience, &link);
    Check(made, "a communicator of its own");
    if (!made.ok()) return;
    char* const in = static_cast<char*>(r.Allocate(most_bytes));
    char* const out = static_cast<char*>(r.Allocate(most_bytes));
    size_t row = 0;
    for (size_t bytes = 1024; bytes <= most_bytes; bytes *= 8, ++row) {
      const uint64_t count = bytes / 4;
      const int rounds = 20;
      const double a = Best(rounds, [&] {
        return r.Run(r.Ask({"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", count, 1, 1}, in, out));
      });
      const double b = Best(rounds, [&] {
        const nccl::Result result = r.gpu().nccl->AllReduce(
            in, out, count, nccl::DataType::kFloat32, nccl::kSum, link->comm(), r.stream().get());
        if (Status s = link->Settle(result, "bare", patience); !s.ok()) return s;
        return r.Finish();
      });
      if (i == 0) ours[row] = a, bare[row] = b;
    }
    (void)nccl::AbortAll(r.gpu().nccl, {link->Release()}, std::chrono::seconds(30));
  });
  std::printf("allreduce of float32 over %d ranks, best of 20, microseconds\n", n);
  std::printf("%12s %12s %12s %8s\n", "bytes", "Ringmaster", "bare NCCL", "ratio");
  size_t row = 0;
  for (size_t bytes = 1024; bytes <= most_bytes; bytes *= 8, ++row) {
    std::printf("%12zu %12.1f %12.1f %8.2f\n", bytes, ours[row], bare[row], ours[row] / bare[row]);
  }
}

int Usage() {
  std::fprintf(stderr, "usage: ringmaster_gpu_test [--fake] [--ranks N] [--most-bytes N]\n");
  return 2;
}

int Run(int n, bool fake, size_t most_bytes) {
  std::unique_ptr<nccl::FakeCluster> cluster;
  std::vector<std::unique_ptr<nccl::FakeProcess>> processes;
  Ranks ranks;
  if (fake) {
    cluster = std::make_unique<nccl::FakeCluster>();
    for (int i = 0; i < n; ++i) {
      processes.push_back(std::make_unique<nccl::FakeProcess>(cluster.get()));
      ranks.push_back(std::make_unique<GpuRank>(processes.back()->gpu(), 0));
    }
  } else {
    const nccl::Gpu& gpu = nccl::ThisMachinesGpu();
    if (const Status s = gpu.Check(); !s.ok()) {
      std::printf("SKIPPED  %s\n", s.message().c_str());
      return 77;
    }
    for (int i = 0; i < n; ++i) ranks.push_back(std::make_unique<GpuRank>(gpu, i % gpu.devices));
  }
  const nccl::Gpu& gpu = ranks[0]->gpu();
  std::printf("%s, NCCL %d, CUDA runtime %d, %d GPUs, %d ranks\n", fake ? "the fake" : "a real GPU",
              gpu.nccl->version(), gpu.cuda->version(), gpu.devices, n);
  uint64_t epoch = kFirstView;
  Enter(ranks, n, epoch);
  OnEach(ranks, n, [](GpuRank& r, int) { TryReductions(r); });
  OnEach(ranks, n, [](GpuRank& r, int) { TryTheOthers(r); });
  if (n > 1) LoseOne(ranks, epoch);
  Compare(ranks, epoch + 2, most_bytes);
  ranks.clear();
  if (cluster != nullptr) {
    for (const std::string& what : cluster->misuse()) Check({RM_ERR_INTERNAL, what}, "misuse");
  }
  std::printf("%s\n", wrong == 0 ? "all is well" : "something is wrong, see above");
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ringmaster::gpu_test

int main(int argc, char** argv) {
  int ranks = 1;
  bool fake = false;
  long most_bytes = 64 << 20;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--fake") == 0) {
      fake = true;
    } else if (std::strcmp(argv[i], "--ranks") == 0 && more) {
      ranks = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--most-bytes") == 0 && more) {
      most_bytes = std::atol(argv[++i]);
    } else {
      return ringmaster::gpu_test::Usage();
    }
  }
  if (ranks < 1 || ranks > 8 || most_bytes < 1024) return ringmaster::gpu_test::Usage();
  return ringmaster::gpu_test::Run(ranks, fake, static_cast<size_t>(most_bytes));
}
