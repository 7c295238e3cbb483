// membership_sim: runs schedules of the membership protocol by hand.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "common/membership/sim/simulation.h"

int main(int argc, char** argv) {
  namespace sim = ringmaster::membership::sim;
  CLI::App app(
      "Simulates the membership protocol: faults drawn from a seed, invariants checked "
      "after every event. Exit status 1 and the seed when one breaks.");
  std::uint64_t seed = 1, schedules = 1000;
  int members = 0;
  std::string without, profile;
  bool trace = false;
  app.add_option("--seed", seed, "Seed of the first schedule; each next one has the next seed");
  app.add_option("--schedules", schedules, "How many");
  app.add_option("--members", members, "Pods at the start (0: drawn, 95 % up to 7)")
      ->check(CLI::Range(0, 64));
  app.add_option("--without", without, "Takes a clause of the rules out (see clauses.md)");
  app.add_option("--profile", profile,
                 "mixed, contended, resigning, forgetful, planned or recovered");
  app.add_flag("--trace", trace,
               "Prints everything that happens in the first schedule that fails "
               "(with --schedules 1: in any case)");
  CLI11_PARSE(app, argc, argv);

  sim::Options options;
  options.members = members;
  if (!without.empty()) {
    auto clause = ringmaster::membership::ClauseFromName(without);
    if (!clause) {
      std::fprintf(stderr, "--without: %s is no clause; they are listed in clauses.md\n",
                   without.c_str());
      return 2;
    }
    options.without.Add(*clause);
  }
  for (int i = 0; !profile.empty() && i <= static_cast<int>(sim::Profile::kCount); ++i) {
    if (i == static_cast<int>(sim::Profile::kCount)) {
      std::fprintf(stderr,
                   "--profile: %s is none of mixed, contended, resigning, forgetful, "
                   "planned, recovered\n",
                   profile.c_str());
      return 2;
    }
    options.profile = static_cast<sim::Profile>(i);
    if (profile == sim::ProfileName(options.profile)) break;
  }
  sim::Coverage coverage;
  for (std::uint64_t i = 0; i < schedules; ++i) {
    options.seed = seed + i;
    sim::Outcome outcome = sim::RunSchedule(options);
    coverage.Add(outcome.coverage);
    bool failed = !outcome.violation.empty();
    if (failed || (trace && schedules == 1)) {
      if (trace) std::printf("%s\n", sim::Explain(options, outcome.violation).c_str());
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
