#include "collectives/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "ringmaster/ringmaster.h"

namespace ringmaster::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFewest = 5, kMost = 20000;  // repeats
constexpr int kWarmUps = 3;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One call and its buffers, made once and then repeated.
class Call {
 public:
  Call(Operation operation, std::size_t floats) : root_(rm_worker_id(0)) {
    const std::size_t ranks = static_cast<std::size_t>(rm_size());
    const std::size_t share = floats / ranks;
    const bool shares_in = operation == Operation::kAllgather;
    shape_ = shares_in ? share : floats;
    in_.assign(shape_, 1);
    request_ = {};
    request_.size = sizeof request_;
    request_.name = NameOf(operation);
    request_.prescale = request_.postscale = 1;
    request_.in = in_.data();
    request_.shape = &shape_;
    request_.dimensions = 1;
    request_.dtype = RM_FLOAT32;
    request_.op = RM_SUM;
    switch (operation) {
      case Operation::kAllreduce:
        out_.resize(floats);
        request_.out = out_.data();
        request_.kind = RM_ALLREDUCE;
        break;
      case Operation::kAllgather:
        request_.kind = RM_ALLGATHER;
        break;
      case Operation::kReducescatter:
        request_.kind = RM_REDUCESCATTER;
        break;
      case Operation::kBroadcast:
        request_.kind = RM_BROADCAST;
        request_.out = in_.data();
        request_.root = root_.c_str();
        break;
      case Operation::kAlltoall:
        request_.kind = RM_ALLTOALL;
        break;
      case Operation::kBarrier:
        request_.kind = RM_BARRIER;
        break;
    }
  }

  // Makes the call once and returns the seconds that it took.
  double Run() {
    const auto begin = Clock::now();
    rm_handle handle = 0;
    if (rm_submit(&request_, 1, &handle) != RM_OK || rm_wait(handle, 0) != RM_OK)
      Die(request_.name);
    const double seconds = Since(begin);
    rm_release(handle);
    return seconds;
  }

 private:
  const std::string root_;
  std::size_t shape_ = 0;
  std::vector<float> in_, out_;
  rm_request request_;
};

// The largest of all ranks' values, on every rank.
double Largest(double value) {
  rm_handle handle = 0;
  if (rm_allreduce_async("largest", &value, &value, 1, RM_FLOAT64, RM_MAX, 1, 1, &handle) !=
          RM_OK ||
      rm_wait(handle, 0) != RM_OK) {
    Die("the largest of a value");
  }
  rm_release(handle);
  return value;
}

}  // namespace

void Die(const char* what) {
  std::fprintf(stderr, "ringmaster-bench: %s: %s\n", what, rm_last_error());
  std::exit(1);
}

Timing Measure(Operation operation, std::size_t bytes, double seconds) {
  const std::size_t ranks = static_cast<std::size_t>(rm_size());
  const std::size_t floats =
      std::max((bytes / sizeof(float) + ranks - 1) / ranks, std::size_t{1}) * ranks;
  Call call(operation, floats);
  double estimate = 0;
  for (int i = 0; i < kWarmUps; ++i) estimate = call.Run();
  const double wanted = seconds / std::max(Largest(estimate), 1e-9);
  Timing timing;
  timing.bytes = operation == Operation::kBarrier ? 0 : floats * sizeof(float);
  timing.repeats = static_cast<int>(std::clamp(wanted, double{kFewest}, double{kMost}));
  std::vector<double> times;
  for (int i = 0; i < timing.repeats; ++i) times.push_back(call.Run());
  double sum = 0;
  for (double time : times) sum += time;
  std::sort(times.begin(), times.end());
  const auto p99 = static_cast<std::size_t>(std::ceil(0.99 * timing.repeats)) - 1;
  timing.mean_seconds = Largest(sum / timing.repeats);
  timing.p99_seconds = Largest(times[p99]);
  return timing;
}

double MeasureAdding(std::size_t bytes) {
  constexpr int kTimes = 5;
  std::vector<float> sum(std::max(bytes / sizeof(float), std::size_t{1}), 1), part(sum.size(), 2);
  double best = 0;
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = Clock::now();
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += part[k];
    const double seconds = Since(begin);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  if (sum.back() != 1 + 2 * kTimes) Die("a sum");  // so that the compiler can't leave it out
  return best;
}

double MeasureStep(double step_seconds, std::size_t bytes) {
  constexpr int kSteps = 10;
  Call call(Operation::kAllreduce, std::max(bytes / sizeof(float), std::size_t{1}));
  const auto step = [&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(step_seconds));
    call.Run();
  };
  step();
  const auto begin = Clock::now();
  for (int i = 0; i < kSteps; ++i) step();
  return Largest(Since(begin) / kSteps);
}

}  // namespace ringmaster::bench
