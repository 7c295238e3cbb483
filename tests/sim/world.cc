#include "tests/sim/world.h"

#include <memory>
#include <utility>

#include "operator/kube/resources.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app::sim {
namespace {

constexpr Micros kEndPatience = 60 * kSecond;
constexpr std::uint64_t kTooManyEvents = 400'000;

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
      journal_(&time_, options_.trace),
      network_(&random_),
      pods_(&time_),
      agreement_(&journal_, &script_,
                 [this](const Given& given) {
                   return pods_.Find(given.pod, given.slot, given.incarnation);
                 }),
      metrics_(std::make_unique<health::Metrics>("ns", "job", "pod")),
      api_(
          OperatorClock(&time_, &random_),
          [this](const kube::Resource& resource, const json&) {
            return resource == kube::Pods() ? UidOf(pods_.size()) : kJobName;
          },
          [this](const kube::Resource& resource, const Change& change) {
            kubelets_.OnApiChange(resource, change);
          }),
      operators_({.options = &options_,
                  .time = &time_,
                  .random = &random_,
                  .network = &network_,
                  .journal = &journal_,
                  .api = &api_,
                  .send =
                      [this](std::uint64_t stream, const v1::OperatorNotice& notice) {
                        sessions_.SendNotice(stream, notice);
                      }}),
      invariants_({.time = time_,
                   .journal = journal_,
                   .pods = pods_,
                   .views = views_,
                   .streams = streams_,
                   .script = script_,
                   .agreement = agreement_}),
      links_(
          {.time = time_,
           .network = network_,
           .pods = pods_,
           .streams = streams_,
           .to_agent =
               [this](int pod, std::uint32_t life, std::function<void(Agent&)> work) {
                 sidecars_.ToAgent(pod, life, std::move(work));
               },
           .launcher_frame = [this](int pod, const json& frame) { launchers_.OnFrame(pod, frame); },
           .launcher_closed = [this](int pod,
                                     std::uint64_t stream) { launchers_.OnClosed(pod, stream); },
           .worker_frame = [this](const WorkerPtr& worker, std::uint64_t stream,
                                  const json& frame) { workers_.OnFrame(worker, stream, frame); },
           .worker_closed = [this](const WorkerPtr& worker,
                                   std::uint64_t stream) { workers_.OnClosed(worker, stream); }}),
      recovery_(
          {.options = options_,
           .journal = journal_,
           .pods = pods_,
           .views = views_,
           .agreement = agreement_,
           .publish = [this](const WorkerPtr& worker,
                             const engine::Retained& result) { calls_.Publish(worker, result); },
           .reach_boundary = [this](const WorkerPtr& worker) { calls_.ReachBoundary(worker); }}),
      calls_({.random = random_,
              .time = time_,
              .journal = journal_,
              .network = network_,
              .script = script_,
              .agreement = agreement_,
              .plan = plan_,
              .views = views_,
              .pods = pods_,
              .invariants = invariants_,
              .links = links_,
              .recovery = recovery_}),
      rings_({.random = random_,
              .time = time_,
              .network = network_,
              .journal = journal_,
              .script = script_,
              .views = views_,
              .pods = pods_,
              .links = links_,
              .calls = calls_,
              .exit_when_heard = [this](const WorkerPtr& worker,
                                        Micros since) { workers_.ExitWhenHeard(worker, since); }}),
      workers_({.random = random_,
                .time = time_,
                .journal = journal_,
                .script = script_,
                .plan = plan_,
                .pods = pods_,
                .invariants = invariants_,
                .links = links_,
                .rings = rings_,
                .calls = calls_,
                .reaped = [this](const WorkerPtr& worker, int code,
                                 int signal) { launchers_.OnExit(worker, code, signal); }}),
      launchers_(
          {.random = random_,
           .time = time_,
           .journal = journal_,
           .script = script_,
           .job = job_,
           .pods = pods_,
           .links = links_,
           .workers = workers_,
           .to_agent =
               [this](int pod, std::uint32_t life, std::function<void(Agent&)> work) {
                 sidecars_.ToAgent(pod, life, std::move(work));
               },
           .kill_pod = [this](int pod, const std::string& why) { kubelets_.KillPod(pod, why); }}),
      peers_({.random = random_,
              .time = time_,
              .network = network_,
              .pods = pods_,
              .to_agent =
                  [this](int pod, std::uint32_t life, std::function<void(Agent&)> work) {
                    sidecars_.ToAgent(pod, life, std::move(work));
                  }}),
      sessions_({.options = options_,
                 .random = random_,
                 .time = time_,
                 .journal = journal_,
                 .network = network_,
                 .pods = pods_,
                 .operators = operators_,
                 .to_agent =
                     [this](int pod, std::uint32_t life, std::function<void(Agent&)> work) {
                       sidecars_.ToAgent(pod, life, std::move(work));
                     }}),
      sidecars_(
          {.options = options_,
           .random = random_,
           .time = time_,
           .journal = journal_,
           .metrics = *metrics_,
           .job = job_,
           .views = views_,
           .pods = pods_,
           .invariants = invariants_,
           .links = links_,
           .workers = workers_,
           .launchers = launchers_,
           .peers = peers_,
           .sessions = sessions_,
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
                 .workers = workers_,
                 .launchers = launchers_,
                 .sidecars = sidecars_}),
      end_({.time = time_,
            .journal = journal_,
            .pods = pods_,
            .views = views_,
            .script = script_,
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
               .links = links_,
               .rings = rings_,
               .workers = workers_,
               .launchers = launchers_,
               .sidecars = sidecars_,
               .kubelets = kubelets_,
               .healed = [this] { time_.After(kSecond, [this] { CheckEnd(); }); }}) {}

World::~World() = default;

Outcome World::Run() {
  Begin();
  while (!journal_.failed() && !over_ && !time_.empty()) {
    if (++journal_.coverage().events > kTooManyEvents)
      journal_.Fail("busy: the schedule does not come to rest");
    time_.RunNext();
  }
  journal_.coverage().schedules = 1;
  return journal_.outcome();
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
  kubelets_.MakeJob();
  operators_.Start();
  plan_.Draw(&random_);
  script_.Draw(&random_);
  time_.After(random_.Between(300 * kMs, 2 * kSecond), [this] { faults_.InjectNext(); });
}

void World::CheckEnd() {
  std::string why;
  if (end_.Healthy(&why)) {
    over_ = true;
  } else if (time_.now() > *plan_.healed_at() + kEndPatience) {
    end_.TraceEnd();
    journal_.Fail("liveness: a minute after the last fault " + why + "; newest: " +
                  (views_.newest() == nullptr ? "none" : membership::Describe(*views_.newest())));
  } else {
    time_.After(500 * kMs, [this] { CheckEnd(); });
  }
}

}  // namespace ringmaster::app::sim
