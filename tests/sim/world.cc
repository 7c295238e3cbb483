#include "tests/sim/world.h"

#include <string>

#include "operator/kube/resources.h"

namespace ringmaster::app::sim {
namespace {

constexpr std::uint64_t kTooManyEvents = 400'000;
// In one of so many schedules the job may have even numbers of pods only.
constexpr std::uint64_t kSizesOneIn = 8;

int DrawPods(Random* random) {
  const auto roll = random->Below(100);
  if (roll < 8) return 1;
  if (roll < 35) return 2;
  if (roll < 65) return 3;
  if (roll < 85) return 4;
  return static_cast<int>(random->Between(5, 6));
}

}  // namespace

World::World(const Options& options)
    : options_(options),
      random_(options.seed),
      journal_([this] { return static_cast<double>(time_.now() - 100 * kSecond) / kMs; },
               options_.trace),
      network_(&random_),
      pods_(&time_),
      invariants_({.time = time_,
                   .journal = journal_,
                   .job = job_,
                   .pods = pods_,
                   .views = views_,
                   .script = script_}),
      api_(
          OperatorClock(&time_, &random_),
          [this](const kube::Resource& resource, const json&) {
            return resource == kube::Pods() ? UidOf(pods_.size()) : kJobName;
          },
          [this](const kube::Resource& resource, const Change& change) {
            kubelets_.OnApiChange(resource, change);
          }),
      operators_({.options = options_,
                  .time = time_,
                  .random = random_,
                  .network = network_,
                  .journal = journal_,
                  .api = api_,
                  .send =
                      [this](std::uint64_t stream, const v1::OperatorNotice& notice) {
                        processes_.sessions().SendNotice(stream, notice);
                      }}),
      processes_(
          {.options = options_,
           .random = random_,
           .time = time_,
           .journal = journal_,
           .network = network_,
           .job = job_,
           .script = script_,
           .plan = plan_,
           .views = views_,
           .pods = pods_,
           .invariants = invariants_,
           .operators = operators_,
           .kill_pod = [this](int pod, const std::string& why) { kubelets_.KillPod(pod, why); }}),
      kubelets_({.random = random_,
                 .time = time_,
                 .journal = journal_,
                 .network = network_,
                 .script = script_,
                 .plan = plan_,
                 .views = views_,
                 .job = job_,
                 .pods = pods_,
                 .api = api_,
                 .operators = operators_,
                 .invariants = invariants_,
                 .workers = processes_.workers(),
                 .launchers = processes_.launchers(),
                 .sidecars = processes_.sidecars()}),
      end_({.time = time_,
            .journal = journal_,
            .pods = pods_,
            .views = views_,
            .script = script_,
            .plan = plan_,
            .job = job_,
            .kubelets = kubelets_}),
      faults_({.options = options_,
               .random = random_,
               .time = time_,
               .journal = journal_,
               .network = network_,
               .plan = plan_,
               .job = job_,
               .pods = pods_,
               .api = api_,
               .operators = operators_,
               .links = processes_.links(),
               .rings = processes_.rings(),
               .workers = processes_.workers(),
               .launchers = processes_.launchers(),
               .sidecars = processes_.sidecars(),
               .kubelets = kubelets_,
               .healed = [this] { end_.Begin(); }}) {}

Outcome World::Run() {
  Begin();
  while (!journal_.failed() && !end_.over() && !time_.empty()) {
    if (++journal_.coverage().events > kTooManyEvents)
      journal_.Fail("busy: the schedule does not come to rest");
    time_.RunNext();
  }
  journal_.coverage().schedules = 1;
  return journal_.outcome();
}

void World::AllowEvenSizesOnly() {
  job_.wanted = std::max(job_.wanted, 2);
  job_.min_pods = std::min(job_.min_pods, 2U);
  for (std::uint32_t pods = 2; pods <= 64; pods += 2) job_.allowed.push_back(pods);
}

void World::Begin() {
  const int pods = options_.pods > 0       ? options_.pods
                   : options_.at_operators ? static_cast<int>(random_.Between(2, 4))
                                           : DrawPods(&random_);
  job_.slots = options_.slots > 0 ? options_.slots : (random_.Chance(300) ? 2 : 1);
  job_.standbys = random_.Chance(300) ? 1 : 0;
  network_.Draw();
  job_.wanted = pods;
  job_.min_pods = random_.Chance(700) ? 1 : static_cast<std::uint32_t>(random_.Between(1, pods));
  if (options_.seed % kSizesOneIn == 0) AllowEvenSizesOnly();
  kubelets_.MakeJob();
  operators_.Start();
  plan_.Draw(&random_);
  script_.Draw(&random_);
  time_.After(random_.Between(300 * kMs, 2 * kSecond), [this] { faults_.InjectNext(); });
}

}  // namespace ringmaster::app::sim
