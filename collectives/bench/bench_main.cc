// ringmaster-bench: a worker that measures the collectives of its job. `ringmaster bench` starts
// it; on a cluster it is the command of a HorovodJob (examples/bench).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <vector>

#include "collectives/bench/cost_model.h"
#include "collectives/bench/measure.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::bench {
namespace {

constexpr double kPatience = 300;  // seconds, for the other workers to begin

using Results = std::map<Operation, std::vector<Timing>>;

// The sizes to measure, each four times the one before. For an allreduce also the size of the
// model, to which the cost model is fitted.
std::vector<std::size_t> SizesOf(Operation operation, const Options& options) {
  if (operation == Operation::kBarrier) return {0};
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = options.min_bytes; bytes <= options.max_bytes; bytes *= 4)
    sizes.push_back(bytes);
  const std::size_t model = options.model_bytes;
  if (operation == Operation::kAllreduce && model > sizes.back()) sizes.push_back(model);
  return sizes;
}

// The factor with which nccl-tests gets the bandwidth of a link from the bytes of the buffer per
// second.
double BusFactor(Operation operation, int ranks) {
  const double share = static_cast<double>(ranks - 1) / ranks;
  if (operation == Operation::kAllreduce) return 2 * share;
  return operation == Operation::kBroadcast ? 1 : share;
}

class Report {
 public:
  Report(const Options& options, int ranks) : ranks_(ranks) {
    if (rm_rank() != 0) return;
    shown_ = stdout;
    if (!options.csv.empty()) {
      csv_.reset(std::fopen(options.csv.c_str(), "w"));
      if (csv_ == nullptr) {
        std::perror(("ringmaster-bench: --csv " + options.csv).c_str());
        std::exit(2);
      }
      std::fprintf(csv_.get(),
                   "operation,ranks,bytes,repeats,mean_us,p99_us,algbw_gbs,busbw_gbs\n");
    }
    std::fprintf(shown_, "%d ranks in %d pod%s, ringmaster %s, float32, sums\n", ranks,
                 rm_cross_size(), rm_cross_size() == 1 ? "" : "s", rm_version());
    std::fprintf(shown_, "%-14s %12s %8s %12s %12s %11s %11s\n", "operation", "bytes", "repeats",
                 "mean us", "p99 us", "algbw GB/s", "busbw GB/s");
  }

  void Add(Operation operation, const Timing& timing) {
    if (shown_ == nullptr) return;
    const double bandwidth = static_cast<double>(timing.bytes) / timing.mean_seconds / 1e9;
    const double bus = bandwidth * BusFactor(operation, ranks_);
    std::fprintf(shown_, "%-14s %12zu %8d %12.1f %12.1f %11.2f %11.2f\n", NameOf(operation),
                 timing.bytes, timing.repeats, timing.mean_seconds * 1e6, timing.p99_seconds * 1e6,
                 bandwidth, bus);
    std::fflush(shown_);
    if (csv_ == nullptr) return;
    std::fprintf(csv_.get(), "%s,%d,%zu,%d,%.3f,%.3f,%.4f,%.4f\n", NameOf(operation), ranks_,
                 timing.bytes, timing.repeats, timing.mean_seconds * 1e6, timing.p99_seconds * 1e6,
                 bandwidth, bus);
  }

  void Model(const CostModel& model, const std::vector<Timing>& allreduces) {
    if (shown_ == nullptr) return;
    std::fprintf(
        shown_,
        "\nCost model of this run: %.1f us a hop, %.3f ns a byte sent (%.2f GB/s), %.3f ns "
        "a byte added up.\n",
        model.latency * 1e6, model.per_byte * 1e9, 1e-9 / std::max(model.per_byte, 1e-15),
        model.per_reduced_byte * 1e9);
    std::fprintf(shown_, "%-14s %12s %12s %12s\n", "allreduce", "bytes", "measured us", "model us");
    for (const Timing& timing : allreduces) {
      std::fprintf(shown_, "%-14s %12zu %12.1f %12.1f\n", "", timing.bytes,
                   timing.mean_seconds * 1e6,
                   model.Ring(ranks_, static_cast<double>(timing.bytes)) * 1e6);
    }
  }

  void Scaling(const CostModel& model, const Options& options, double measured_step) {
    if (shown_ == nullptr) return;
    const auto bytes = static_cast<double>(options.model_bytes);
    const double step = options.step_ms / 1e3;
    std::fprintf(shown_,
                 "\nA model of %.0f MB that computes %.0f ms a step, nothing hidden behind the "
                 "computing: share of the time that is computing\n",
                 bytes / 1e6, options.step_ms);
    std::fprintf(
        shown_, "%8s %10s %22s\n", "ranks", "ring",
        (std::to_string(options.servers) + " parameter server" + (options.servers > 1 ? "s" : ""))
            .c_str());
    for (int ranks = 2; ranks <= 1024; ranks *= 2) {
      const double ring = model.Ring(ranks, bytes);
      const double servers = model.ParameterServers(ranks, options.servers, bytes);
      std::fprintf(shown_, "%8d %9.1f%% %21.1f%%\n", ranks, 100 * Efficiency(step, ring),
                   100 * Efficiency(step, servers));
    }
    std::fprintf(shown_, "Measured here with %d ranks: %.1f%%; the model says %.1f%%.\n", ranks_,
                 100 * step / measured_step, 100 * Efficiency(step, model.Ring(ranks_, bytes)));
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const int ranks_;
  std::FILE* shown_ = nullptr;  // rank 0 alone
  std::unique_ptr<std::FILE, Close> csv_;
};

Line LineOf(const std::vector<Timing>& timings) {
  std::vector<Point> points;
  for (const Timing& timing : timings)
    points.push_back({static_cast<double>(timing.bytes), timing.mean_seconds});
  return FitLargest(points);
}

void PredictScaling(const Options& options, const Results& results, int ranks, Report* report) {
  const auto allreduces = results.find(Operation::kAllreduce);
  if (allreduces == results.end()) return;
  const CostModel model =
      FitModel(ranks, LineOf(allreduces->second),
               MeasureAdding(options.model_bytes) / static_cast<double>(options.model_bytes));
  report->Model(model, allreduces->second);
  const double step = MeasureStep(options.step_ms / 1e3, options.model_bytes);
  report->Scaling(model, options, step);
}

int Run(const Options& options) {
  if (rm_init(kPatience) != RM_OK || rm_enter(kPatience) != RM_OK) Die("rm_init");
  const int ranks = rm_size();
  const uint64_t view = rm_epoch();
  if (ranks < 2) {
    std::fprintf(stderr, "ringmaster-bench: one rank has nobody to speak to: start at least two\n");
    return 2;
  }
  Report report(options, ranks);
  Results results;
  for (Operation operation : options.operations) {
    for (std::size_t bytes : SizesOf(operation, options)) {
      results[operation].push_back(Measure(operation, bytes, options.seconds));
      report.Add(operation, results[operation].back());
    }
  }
  PredictScaling(options, results, ranks, &report);
  if (rm_epoch() != view) {
    std::fprintf(stderr,
                 "ringmaster-bench: workers left or joined during the run: these are figures of "
                 "no one view\n");
    return 1;
  }
  if (rm_shutdown(kPatience) != RM_OK) Die("rm_shutdown");
  return 0;
}

}  // namespace
}  // namespace ringmaster::bench

int main(int argc, char** argv) {
  ringmaster::bench::Options options;
  CLI::App app(
      "Measures the collectives of the job that it is started in, and fits a model of their cost.",
      "ringmaster-bench");
  ringmaster::bench::AddOptions(&app, &options);
  try {
    app.parse(argc, argv);
    if (const std::string wrong = ringmaster::bench::WhatIsWrong(options); !wrong.empty())
      throw CLI::ParseError(wrong, CLI::ExitCodes::ValidationError);
  } catch (const CLI::ParseError& error) {
    constexpr int kUsage = 2;
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : kUsage;
  }
  return ringmaster::bench::Run(options);
}
