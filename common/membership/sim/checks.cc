// The checks of the simulation: the invariants after every event, and at the end that training goes
// on.
#include <algorithm>

#include "common/membership/sim/world.h"

namespace ringmaster::membership::sim {

// A member or an operator takes this view as decided.
void World::Announce(const ViewPtr& view) {
  const ViewPtr before = truth_.Of(view->epoch).view;
  if (before) {
    if (before != view && *before != *view) {
      journal_.Fail("I2: two views " + EpochText(view->epoch) + ", two successors of " +
                    EpochText(view->parent) + ": [" + Describe(*before) + "] and [" +
                    Describe(*view) + "]");
    }
    return;
  }
  truth_.Add(view);
  ++journal_.coverage().views;
  journal_.coverage().planned_views += view->planned ? 1 : 0;
  journal_.coverage().held_views += view->train ? 0 : 1;
  if (view->parent == 0) return;
  if (EpochNumber(view->epoch) == 1) return BeginLineage(*view);
  const ViewPtr parent = truth_.Of(view->parent).view;
  if (!parent) return;
  if (view->reason == Reason::kLinkBroken && view->pods.size() < parent->pods.size() &&
      !view->train) {
    journal_.Fail("held: " + EpochText(view->epoch) +
                  " leaves a pod out for its link and is too small");
  }
  // A joiner must find the others at a boundary: a state copied in the middle of a step is torn.
  bool admits = std::any_of(view->ranks.begin(), view->ranks.end(), [&](const RankEntry& rank) {
    return parent->FindRank(view->pods[rank.pod].uid, rank.slot, rank.incarnation) < 0;
  });
  for (const RankEntry& rank : view->ranks) {
    if (!admits || rank.joined) continue;
    const SimPod& pod = pods_[IndexOf(view->pods[rank.pod].uid)];
    const SimWorker& worker = pod.workers[rank.slot];
    bool in_parent =
        worker.alive && worker.incarnation == rank.incarnation && worker.installed == parent->epoch;
    if (in_parent && worker.boundary != parent->epoch) {
      journal_.Fail("torn: " + EpochText(view->epoch) + " admits a joiner and " + pod.uid +
                    " is in the middle of a step");
    }
  }
}

// The first view of a lineage: the job goes on from what its members hold, and no living pod may
// hold more.
void World::BeginLineage(const View& view) {
  const bool restart = view.reason == Reason::kBootstrap;
  std::int64_t step = restart ? 0 : -1;
  std::uint64_t hash = 0;
  for (const RankEntry& rank : view.ranks) {
    const SimWorker& worker = pods_[IndexOf(view.pods[rank.pod].uid)].workers[rank.slot];
    bool holds = !restart && !rank.joined && worker.incarnation == rank.incarnation;
    if (!holds || worker.step <= step) continue;
    step = worker.step;
    hash = worker.hash;
  }
  for (const SimPod& pod : pods_) {
    // A pod that leaves ends anyway. One that its own view does not list, or lists as the
    // incarnation before it lost its file, counts its state as void.
    if (pod.gone || pod.leaving || !pod.disk || !pod.disk->view) continue;
    if (pod.disk->view->FindMember(pod.uid, pod.pod.incarnation) < 0) continue;
    for (const SimWorker& worker : pod.workers) {
      if (!worker.alive || !worker.holds || worker.installed == 0) continue;
      if (worker.step > step || restart) {
        journal_.Fail("I5: " + EpochText(view.epoch) + " begins at step " + std::to_string(step) +
                      ", but " + pod.uid + " lives and holds step " + std::to_string(worker.step));
      }
    }
  }
  journal_.coverage().steps_lost += truth_.GoBackTo(step, hash);
}

bool World::Healthy() {
  const View& view = *truth_.newest();
  bool all_leaving = std::all_of(view.pods.begin(), view.pods.end(),
                                 [&](const Pod& pod) { return pods_[IndexOf(pod.uid)].leaving; });
  for (const SimPod& pod : pods_) {
    int index = view.FindMember(pod.uid, pod.pod.incarnation);
    if (pod.gone || (pod.leaving && !all_leaving)) {
      if (index >= 0) return false;
      continue;
    }
    if (pod.leaving) continue;
    if (index < 0 || !pod.up) return false;
    for (int s = 0; s < job_.slots; ++s) {
      const SimWorker& worker = pod.workers[s];
      if (view.FindRank(pod.uid, s, worker.incarnation) < 0 || worker.installed != view.epoch) {
        return false;
      }
    }
  }
  if (view.train != (view.pods.size() >= job_.min_pods)) return false;
  if (view.train) return truth_.Of(view.epoch).last_step > events_.now() - 400 * kMs;
  for (const RankEntry& rank : view.ranks) {
    const SimPod& pod = pods_[IndexOf(view.pods[rank.pod].uid)];
    if (pod.workers[rank.slot].boundary != view.epoch) return false;
  }
  return true;
}

// Whether the job is right not to train: a pod is not proven dead, so it may live, and of the
// newest view too few pods live to decide its successor, or none that holds the state. The newest
// view is the newest that any pod still knows, as the pods that decided a newer one may have lost
// their files.
bool World::RightlyBlocked() {
  bool anybody = false, unproven = false;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    anybody = anybody || (!pods_[i].gone && !pods_[i].leaving);
    unproven = unproven || (pods_[i].gone && pods_[i].started && !Proven(static_cast<int>(i)));
  }
  if (!anybody) return true;
  ViewPtr known = record_.record().view;
  std::uint64_t promised = record_.record().lineage;
  for (const SimPod& pod : pods_) {
    if (pod.gone || !pod.up) continue;
    promised = std::max(promised, pod.member->state().lineage);
    if (EpochOf(pod.member->current()) > EpochOf(known)) known = pod.member->current();
  }
  // The record is gone, and nobody remembers a view: a person has to begin the job again.
  if (known == nullptr && !operators_[0].heard && !operators_[1].heard) return true;
  if (!unproven) return false;
  if (known == nullptr || promised > EpochLineage(known->epoch)) return true;
  const View& view = *known;
  std::size_t votes = 0;
  bool all = true;
  bool holder = false;
  for (std::size_t p = 0; p < view.pods.size(); ++p) {
    const SimPod& pod = pods_[IndexOf(view.pods[p].uid)];
    bool there = !pod.gone && pod.pod.incarnation == view.pods[p].incarnation;
    bool resigned =
        there && pod.disk->view && pod.disk->view->epoch == view.epoch && pod.disk->resigned;
    votes += there && !resigned ? 1 : 0;
    all = all && there;
    for (const RankEntry& rank : view.ranks) {
      const SimWorker& worker = pod.workers[rank.slot];
      bool holds = !rank.joined || truth_.Of(view.epoch).ran;
      if (rank.pod == p && there && !resigned && worker.alive &&
          worker.incarnation == rank.incarnation && holds) {
        holder = true;
      }
    }
  }
  if (!holder || votes == 0) return true;
  const std::size_t record = view.pods.size() % 2 == 0 ? 1 : 0;
  const std::size_t record_votes = record_.record().view != nullptr ? record : 0;
  bool majority = (votes + record_votes) * 2 > view.pods.size() + record;
  return !majority && !all;
}

void World::CheckEnd() {
  // A pod that leaves by plan waits until the record has the view without it. Where the record was
  // deleted that never comes, so the pod is killed after a grace period.
  for (std::size_t i = 0; i < pods_.size() && record_.record().view == nullptr; ++i) {
    if (!pods_[i].leaving || pods_[i].gone || events_.now() < end_ - 30000 * kMs) continue;
    KillPod(static_cast<int>(i));
    pods_[i].proven_at = events_.now();
  }
  if (Healthy()) {
    finished_ = true;
  } else if (events_.now() >= end_) {
    finished_ = true;
    if (RightlyBlocked()) {
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

void Coverage::Add(const Coverage& o) {
  for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += o.faults[i];
  schedules += o.schedules, events += o.events, messages += o.messages;
  lost += o.lost, repeated += o.repeated, steps += o.steps;
  views += o.views, planned_views += o.planned_views, held_views += o.held_views;
  campaigns += o.campaigns, refused += o.refused;
  by_majority += o.by_majority, by_record += o.by_record, by_all += o.by_all;
  record_conflicts += o.record_conflicts, blocked += o.blocked;
  recoveries += o.recoveries, recovered_views += o.recovered_views;
  restarts += o.restarts, recovery_waits += o.recovery_waits;
  steps_lost += o.steps_lost, five_and_more += o.five_and_more;
  largest = std::max(largest, o.largest);
}

std::string Coverage::Text() const {
  std::string text;
  auto line = [&](const std::string& name, std::uint64_t n) {
    text += "  " + name + std::string(name.size() < 28 ? 28 - name.size() : 1, ' ') +
            std::to_string(n) + "\n";
  };
  line("schedules", schedules), line("largest membership", largest), line("events", events);
  line("messages", messages), line("  lost", lost), line("  repeated", repeated);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    line(std::string("fault: ") + FaultName(static_cast<Fault>(i)), faults[i]);
  }
  line("steps completed", steps), line("views decided", views);
  line("  planned", planned_views), line("  held below min", held_views);
  line("campaigns", campaigns), line("  refused for a higher one", refused);
  line("quorums by majority (6a)", by_majority), line("quorums with R (6a)", by_record);
  line("quorums by resignation (6b)", by_all), line("record write conflicts", record_conflicts);
  line("recoveries begun", recoveries), line("  ended with survivors", recovered_views);
  line("  ended with a restart", restarts), line("  waits for proof", recovery_waits);
  line("  steps lost with the dead", steps_lost);
  line("schedules of 5 pods and more", five_and_more);
  line("rightly blocked at the end", blocked);
  return text;
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
