// agent_sim: runs schedules of whole sidecars by hand.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/simulation.h"

namespace {

namespace sim = ringmaster::app::sim;
namespace controllers = ringmaster::controllers;

struct Arguments {
  sim::Options options;
  std::uint64_t schedules = 1000;
  bool trace = false;
};

// The exit status.
int RunSchedules(Arguments args) {
  sim::Coverage coverage;
  for (std::uint64_t i = 0; i < args.schedules; ++i, ++args.options.seed) {
    const sim::Outcome outcome = sim::RunSchedule(args.options);
    coverage.Add(outcome.coverage);
    const bool failed = !outcome.violation.empty();
    if (args.trace && (failed || args.schedules == 1))
      std::printf("%s\n", sim::Explain(args.options, outcome.violation).c_str());
    if (!failed) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(args.options.seed),
                outcome.violation.c_str());
    std::printf("again: agent_sim --seed %llu --pods %d --slots %d%s --schedules 1 --trace\n",
                static_cast<unsigned long long>(args.options.seed), args.options.pods,
                args.options.slots, args.options.at_operators ? " --at-operators" : "");
    return 1;
  }
  std::printf("no violation\n%s", coverage.Text().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Simulates whole jobs, sidecars and operator, with workers, network and API server: faults "
      "drawn "
      "from a seed, what must hold checked after every event. Exit status 1 and the seed when "
      "something does not.");
  Arguments args;
  app.add_option("--seed", args.options.seed,
                 "Seed of the first schedule; each next one has the next seed");
  app.add_option("--schedules", args.schedules, "How many");
  app.add_option("--pods", args.options.pods, "Pods at the start (0: drawn)")
      ->check(CLI::Range(0, 6));
  app.add_option("--slots", args.options.slots, "Workers in each pod (0: drawn)")
      ->check(CLI::Range(0, 4));
  app.add_flag("--no-finalizer{false}", args.options.proof_finalizer,
               "Pods carry no finalizer that keeps them until their death is proven");
  const std::map<std::string, bool controllers::Forgets::*> kForgets = {
      {"versions", &controllers::Forgets::versions},
      {"lineages", &controllers::Forgets::lineages},
      {"oldReports", &controllers::Forgets::old_reports}};
  std::vector<std::string> forgets;
  app.add_option("--forget", forgets, "What of glue_clauses.md every operator forgets")
      ->check(CLI::IsMember(kForgets));
  app.add_flag("--at-operators", args.options.at_operators,
               "Mostly faults of operators, and those that make pods need one");
  std::vector<std::string> without;
  app.add_option("--without", without, "Takes a clause of glue_clauses.md out of every sidecar")
      ->check(CLI::IsMember(std::vector<std::string>(ringmaster::app::kGlueClauseNames.begin(),
                                                     ringmaster::app::kGlueClauseNames.end())));
  app.add_flag("--trace", args.trace,
               "Prints everything that happens in the first schedule that fails "
               "(with --schedules 1: in any case)");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& name : without)
    args.options.without.Add(*ringmaster::app::GlueClauseFromName(name));
  for (const std::string& name : forgets) args.options.forgets.*kForgets.at(name) = true;
  return RunSchedules(args);
}
