#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/drills.h"
#include "tests/gpu/verdicts.h"

namespace ringmaster::gpu_test {
namespace {

using engine::Kind;
using engine::Request;

template <typename T>
void ExpectGathered(GpuRank& r, const GpuRank::Asked& asked, const std::vector<T>& should,
                    const std::string& what) {
  if (asked->gathered == nullptr) return Wrong(&r.board(), what + ": there is no result");
  Expect(&r.board(), r.Download<T>(asked->gathered->data(), should.size()), should, what);
}

void TryReductions(GpuRank& r) {
  const float n = static_cast<float>(r.size());
  const float all = n * (n + 1) / 2;  // of rank + 1
  const auto reduce = [&](rm_op op, double prescale, double postscale, float expected) {
    float* data = r.Upload(std::vector<float>(1000, static_cast<float>(r.rank() + 1)));
    const auto asked =
        r.Ask({"x", Kind::kAllreduce, RM_FLOAT32, op, "", 1000, prescale, postscale}, data, data);
    const std::string what = "allreduce with operation " + std::to_string(op);
    Check(&r.board(), r.Run(asked), what);
    Expect(&r.board(), r.Download<float>(data, 1000), std::vector<float>(1000, expected), what);
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
  Check(&r.board(), r.Run(gather), "allgather");
  ExpectGathered(r, gather, gathered, "allgather");

  int32_t* sent = r.Upload(std::vector<int32_t>(5, own));
  const auto broadcast =
      r.Ask({"b", Kind::kBroadcast, RM_INT32, RM_SUM, "worker 0", 5, 1, 1}, sent, sent);
  Check(&r.board(), r.Run(broadcast, n - 1), "broadcast");
  Expect(&r.board(), r.Download<int32_t>(sent, 5), std::vector<int32_t>(5, n - 1), "broadcast");

  Request request{"s", Kind::kReducescatter, RM_FLOAT32, RM_SUM, "", static_cast<uint64_t>(n) + 1};
  const auto scatter = r.Ask(request, r.Upload(std::vector<float>(n + 1, 1)), nullptr);
  Check(&r.board(), r.Run(scatter), "reducescatter");
  const size_t share = own == 0 ? 2 : 1;
  ExpectGathered(r, scatter, std::vector<float>(share, static_cast<float>(n)), "reducescatter");

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
  Check(&r.board(), r.Run(exchange), "alltoall");
  ExpectGathered(r, exchange, exchanged, "alltoall");
}

}  // namespace

void TryCollectives(GpuRank& r) {
  TryReductions(r);
  TryTheOthers(r);
}

}  // namespace ringmaster::gpu_test
