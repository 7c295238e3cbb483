#include "common/membership/sim/world.h"

#include <algorithm>

namespace ringmaster::membership::sim {
namespace {

constexpr std::uint64_t kTooManyEvents = 2'000'000;
// In one of so many schedules the job may train in even numbers of pods only.
constexpr std::uint64_t kSizesOneIn = 8;

Profile DrawProfile(const Options& options, Random* random) {
  if (options.profile != Profile::kCount) return options.profile;
  return static_cast<Profile>(random->Chance(500) ? 0 : random->Below(6));
}

int DrawMembers(Random* random) {
  std::int64_t roll = random->Below(1000);
  if (roll < 40) return 1;
  if (roll < 280) return 2;
  if (roll < 480) return 3;
  if (roll < 690) return 4;
  if (roll < 820) return 5;
  if (roll < 890) return 6;
  if (roll < 950) return 7;
  if (roll < 985) return static_cast<int>(random->Between(8, 12));
  return static_cast<int>(random->Between(13, 64));
}

}  // namespace

World::World(const Options& options)
    : options_(options),
      random_(options.seed),
      profile_(DrawProfile(options, &random_)),
      journal_([this] { return static_cast<double>(events_.now() - 1000 * kMs) / kMs; },
               options.trace),
      network_(&random_),
      invariants_({.events = events_,
                   .pods = pods_,
                   .job = job_,
                   .record = record_,
                   .truth = truth_,
                   .journal = journal_}),
      workers_({.options = options_,
                .events = events_,
                .random = random_,
                .network = network_,
                .pods = pods_,
                .job = job_,
                .truth = truth_,
                .journal = journal_,
                .step = [this](int pod, const Event& event) { sidecars_.Step(pod, event); }}),
      sidecars_({.options = options_,
                 .events = events_,
                 .random = random_,
                 .network = network_,
                 .pods = pods_,
                 .job = job_,
                 .truth = truth_,
                 .journal = journal_,
                 .workers = workers_,
                 .invariants = invariants_,
                 .registers = [this](int pod) { operators_.Forget(pod); }}),
      operators_({.options = options_,
                  .events = events_,
                  .random = random_,
                  .network = network_,
                  .pods = pods_,
                  .job = job_,
                  .record = record_,
                  .journal = journal_,
                  .workers = workers_,
                  .sidecars = sidecars_,
                  .invariants = invariants_}),
      faults_({.profile = profile_,
               .events = events_,
               .random = random_,
               .network = network_,
               .pods = pods_,
               .job = job_,
               .record = record_,
               .journal = journal_,
               .workers = workers_,
               .sidecars = sidecars_,
               .operators = operators_}) {
  pods_.reserve(128);
}

Outcome World::Run() {
  Bootstrap();
  while (!journal_.failed() && !finished_ && !events_.empty()) {
    const SimEvent event = events_.Next();
    if (++journal_.coverage().events > kTooManyEvents)
      journal_.Fail("busy: the schedule does not come to rest");
    Handle(event);
  }
  journal_.coverage().schedules = 1;
  for (const SimPod& pod : pods_) {
    if (pod.member) journal_.coverage().Add(pod.member->counters());
  }
  return journal_.outcome();
}

void World::Bootstrap() {
  int members = options_.members > 0 ? options_.members : DrawMembers(&random_);
  if (profile_ == Profile::kContended && options_.members == 0) {
    members = static_cast<int>(random_.Between(2, 5));
  }
  journal_.coverage().largest = members;
  journal_.coverage().five_and_more = members >= 5 ? 1 : 0;
  job_.slots = members <= 8 && random_.Chance(200) ? 2 : 1;
  network_.Draw(profile_ == Profile::kContended);
  job_.wanted = members;
  job_.min_pods = random_.Chance(700) ? 1 : static_cast<std::uint32_t>(random_.Between(1, members));
  if (options_.seed % kSizesOneIn == 0) {
    for (std::uint32_t pods = 2; pods <= 100; pods += 2) job_.allowed.push_back(pods);
  }

  std::vector<Candidate> candidates;
  for (int i = 0; i < members; ++i) {
    sidecars_.AddPod(true);
    Candidate candidate{pods_[i].pod, {}};
    for (int s = 0; s < job_.slots; ++s) {
      candidate.workers.push_back({static_cast<std::uint32_t>(s), 1, "", "", true});
    }
    candidates.push_back(std::move(candidate));
  }
  auto first = std::make_shared<const View>(BootstrapView(std::move(candidates), job_.min_pods));
  operators_.Begin(first);
  for (int i = 0; i < members; ++i) {
    sidecars_.Start(i);
    workers_.ShowSidecar(i);
    sidecars_.Step(i, ringmaster::membership::ViewDecided{first});
  }
  for (int op = 0; op < Operators::kCount; ++op) {
    events_.After(random_.Below(500 * kMs), Kind::kRecovery, 0, op);
  }
  int faults = static_cast<int>(random_.Between(1, 3) + random_.Below(members > 7 ? 3 : 6));
  Micros at = events_.now();
  for (int i = 0; i < faults; ++i) {
    // Half of the faults come shortly after the one before.
    at += random_.Chance(500) ? random_.Below(20 * kMs) : random_.Below(900 * kMs);
    events_.At(at, Kind::kFault);
  }
  events_.At(at + random_.Between(50 * kMs, 1500 * kMs), Kind::kHeal);
}

bool World::PostponedByPause(const SimEvent& event) {
  int actor = -1;
  switch (event.kind) {
    case Kind::kDeliver:
    case Kind::kFromRecord:
      actor = event.b;
      break;
    case Kind::kTimer:
    case Kind::kHeartbeats:
    case Kind::kToWorker:
    case Kind::kFromWorker:
    case Kind::kWorkersSeen:
    case Kind::kReset:
    case Kind::kNotifyView:
    case Kind::kAsked:
      actor = event.a;
      break;
    default:
      return false;
  }
  if (pods_[actor].paused_until <= events_.now()) return false;
  if (event.kind == Kind::kTimer && pods_[actor].timer == event.at) {
    pods_[actor].timer = pods_[actor].paused_until;
  }
  events_.At(pods_[actor].paused_until, event.kind, event.a, event.b, event.x, event.y,
             event.command, event.message);
  return true;
}

void World::Handle(const SimEvent& event) {
  if (PostponedByPause(event)) return;
  auto alive = [&](int pod) { return pods_[pod].up && pods_[pod].life == event.x; };
  switch (event.kind) {
    case Kind::kDeliver:
    case Kind::kFromRecord:
      return sidecars_.OnMessage(event);
    case Kind::kToRecord:
      return AskRecord(event);
    case Kind::kTimer:
      return sidecars_.OnTimer(event);
    case Kind::kHeartbeats:
      if (alive(event.a)) sidecars_.Heartbeats(event.a);
      return;
    case Kind::kToWorker:
      return workers_.OnCommand(event);
    case Kind::kFromWorker:
      return workers_.OnMessage(event);
    case Kind::kWorkersSeen:
      if (alive(event.a)) workers_.ShowSidecar(event.a);
      return;
    case Kind::kStep:
      return workers_.TryStep(event.x);
    case Kind::kFault:
      return faults_.InjectNext();
    case Kind::kStartSidecar:
      return sidecars_.Start(event.a);
    case Kind::kStartWorker:
      return workers_.Start(event.a, event.b);
    case Kind::kReset:
      return sidecars_.Step(event.a, PodSuspected{pods_[event.b].uid, "reset"});
    case Kind::kNotifyView:
      return operators_.NotifyView(event.a);
    case Kind::kHeal:
      return Heal();
    case Kind::kCheck:
      return CheckEnd();
    case Kind::kEndCut:
      if (event.a == event.b) network_.Join();
      return network_.Mend(event.a, event.b);
    case Kind::kRecovery:
      operators_.RunRecovery(event.b);
      if (event.x == 0) events_.After(500 * kMs, Kind::kRecovery, 0, event.b);
      return;
    case Kind::kAsked:
      return operators_.OnAsked(event.a, event.x, event.y != 0);
    case Kind::kRecoveryReport:
      return operators_.OnReport(event.b, event.a, events_.Report(event.message));
  }
}

void World::AskRecord(const SimEvent& event) {
  const Message message = events_.Take(event.message);
  if (network_.ReachesOperators(event.a)) operators_.AskRecord(event.b, message, event.a);
}

void World::Heal() {
  faults_.Heal();
  end_ = events_.now() + 40000 * kMs;
  events_.After(200 * kMs, Kind::kCheck);
}

void World::CheckEnd() {
  // A pod that leaves by plan waits until the record has the view without it. Where the record was
  // deleted that never comes, so the pod is killed after a grace period.
  for (std::size_t i = 0; i < pods_.size() && record_.record().view == nullptr; ++i) {
    if (!pods_[i].leaving || pods_[i].gone || events_.now() < end_ - 30000 * kMs) continue;
    faults_.KillPod(static_cast<int>(i));
    pods_[i].proven_at = events_.now();
  }
  if (invariants_.Healthy()) {
    finished_ = true;
  } else if (events_.now() >= end_) {
    finished_ = true;
    if (invariants_.RightlyBlocked(operators_.KnowAView())) {
      ++journal_.coverage().blocked;
    } else {
      for (const SimPod& pod : pods_) {
        journal_.Trace([&] {
          std::string text = pod.uid + (pod.gone ? " gone" : "") + (pod.leaving ? " leaving" : "");
          for (const SimWorker& w : pod.workers) {
            text += w.alive ? " worker alive" : " worker dead";
            text += " installed " + EpochText(w.installed) + " stopped " + EpochText(w.stopped) +
                    " boundary " + EpochText(w.boundary);
          }
          return text;
        });
      }
      journal_.Fail("liveness: 40 s after the last fault [" + Describe(*truth_.newest()) +
                    "] does not train with all pods that are there");
    }
  } else {
    events_.After(200 * kMs, Kind::kCheck);
  }
}

Outcome RunSchedule(const Options& options) { return World(options).Run(); }

std::string Explain(const Options& options, const std::string& violation) {
  std::string trace;
  Options again = options;
  again.trace = &trace;
  RunSchedule(again);
  return violation + "\n" + trace;
}

}  // namespace ringmaster::membership::sim
