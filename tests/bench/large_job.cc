// How a look at a job, and the making of its next view, grow with its pods: half of them are gone,
// or join, at once. The line BigO says N where twice the pods take twice the time.
//
//   build/release/bin/large_job
#include <benchmark/benchmark.h>

#include "common/membership/next_view.h"
#include "operator/planner/planner.h"
#include "operator/planner/testing/world.h"

namespace {

using ringmaster::planner::World;
namespace membership = ringmaster::membership;

membership::View ViewOf(int pods) {
  std::vector<membership::Candidate> candidates;
  for (int i = 0; i < pods; ++i) {
    const std::string uid = World::Uid(i);
    candidates.push_back({{uid, uid, 1, "n", "z", "h:1", "h:2", "h:3"},
                          {{.slot = 0, .incarnation = 1, .ready = true}}});
  }
  return membership::BootstrapView(std::move(candidates), 1);
}

void LookAtAJobThatLosesHalf(benchmark::State& state) {
  const int pods = static_cast<int>(state.range(0));
  World world(pods);
  for (int i = 0; i < pods; ++i) world.Running(i).Connected(i);
  world.in.view = std::make_shared<const membership::View>(ViewOf(pods));
  for (auto& sidecar : world.in.sidecars) sidecar.epoch = world.in.view->epoch;
  for (int i = 0; i < pods / 2; ++i) {
    world.in.pods[i].all_terminated = world.in.pods[i].proven_dead = true;
    world.in.sidecars[i].connected = false;
  }
  for (auto _ : state) benchmark::DoNotOptimize(ringmaster::planner::Plan(world.in));
  state.SetComplexityN(pods);
}
BENCHMARK(LookAtAJobThatLosesHalf)
    ->RangeMultiplier(2)
    ->Range(512, 8192)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

void NextViewThatHalfJoins(benchmark::State& state) {
  const int pods = static_cast<int>(state.range(0));
  const membership::View all = ViewOf(pods), half = ViewOf(pods / 2);
  membership::Change change;
  change.planned = change.ran = true;
  change.gone.resize(half.pods.size());
  change.draining.resize(half.pods.size());
  change.lost_worker.resize(half.ranks.size());
  change.proposer = half.coordinator;
  for (int i = pods / 2; i < pods; ++i) {
    membership::Joiner joiner;
    joiner.candidate = {all.pods[i], {{.slot = 0, .incarnation = 1, .ready = true}}};
    change.joiners.push_back(std::move(joiner));
  }
  for (auto _ : state) benchmark::DoNotOptimize(membership::NextView(half, change));
  state.SetComplexityN(pods);
}
BENCHMARK(NextViewThatHalfJoins)
    ->RangeMultiplier(2)
    ->Range(512, 8192)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

}  // namespace

BENCHMARK_MAIN();
