// membership_sim: runs schedules of the membership protocol by hand.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "common/membership/sim/simulation.h"

namespace {

namespace sim = ringmaster::membership::sim;

struct Arguments {
  std::uint64_t seed = 1;
  std::uint64_t schedules = 1000;
  int members = 0;
  std::string without, profile;
  bool trace = false;
};

void Declare(CLI::App* app, Arguments* args) {
  app->add_option("--seed", args->seed,
                  "Seed of the first schedule; each next one has the next seed");
  app->add_option("--schedules", args->schedules, "How many");
  app->add_option("--members", args->members, "Pods at the start (0: drawn, 95 % up to 7)")
      ->check(CLI::Range(0, 64));
  app->add_option("--without", args->without, "Takes a clause of the rules out (see clauses.md)");
  app->add_option("--profile", args->profile,
                  "mixed, contended, resigning, forgetful, planned or recovered");
  app->add_flag("--trace", args->trace,
                "Prints everything that happens in the first schedule that fails "
                "(with --schedules 1: in any case)");
}

// False: a name is unknown, and standard error says which.
bool ReadNames(const Arguments& args, sim::Options* options) {
  if (!args.without.empty()) {
    auto clause = ringmaster::membership::ClauseFromName(args.without);
    if (!clause) {
      std::fprintf(stderr, "--without: %s is no clause; they are listed in clauses.md\n",
                   args.without.c_str());
      return false;
    }
    options->without.Add(*clause);
  }
  if (args.profile.empty()) return true;
  for (int i = 0; i < static_cast<int>(sim::Profile::kCount); ++i) {
    options->profile = static_cast<sim::Profile>(i);
    if (args.profile == sim::ProfileName(options->profile)) return true;
  }
  std::fprintf(stderr,
               "--profile: %s is none of mixed, contended, resigning, forgetful, "
               "planned, recovered\n",
               args.profile.c_str());
  return false;
}

// Returns the exit status.
int RunSchedules(const Arguments& args, sim::Options options) {
  sim::Coverage coverage;
  for (std::uint64_t i = 0; i < args.schedules; ++i) {
    options.seed = args.seed + i;
    sim::Outcome outcome = sim::RunSchedule(options);
    coverage.Add(outcome.coverage);
    const bool failed = !outcome.violation.empty();
    if (args.trace && (failed || args.schedules == 1)) {
      std::printf("%s\n", sim::Explain(options, outcome.violation).c_str());
    }
    if (failed) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(options.seed),
                  outcome.violation.c_str());
      std::printf("again: membership_sim --seed %llu --schedules 1 --trace\n",
                  static_cast<unsigned long long>(options.seed));
      return 1;
    }
  }
  std::printf("no violation\n%s", coverage.Text().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Simulates the membership protocol: faults drawn from a seed, invariants checked "
      "after every event. Exit status 1 and the seed when one breaks.");
  Arguments args;
  Declare(&app, &args);
  CLI11_PARSE(app, argc, argv);
  sim::Options options;
  options.members = args.members;
  if (!ReadNames(args, &options)) return 2;
  return RunSchedules(args, options);
}
