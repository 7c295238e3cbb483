#include "common/membership/sim/invariants.h"

#include <algorithm>
#include <string>

namespace ringmaster::membership::sim {

void Invariants::Announce(const ViewPtr& view) {
  const ViewPtr before = parts_.truth.Of(view->epoch).view;
  if (before) {
    if (before != view && *before != *view) {
      parts_.journal.Fail("I2: two views " + EpochText(view->epoch) + ", two successors of " +
                          EpochText(view->parent) + ": [" + Describe(*before) + "] and [" +
                          Describe(*view) + "]");
    }
    return;
  }
  parts_.truth.Add(view);
  ++parts_.journal.coverage().views;
  parts_.journal.coverage().planned_views += view->planned ? 1 : 0;
  parts_.journal.coverage().held_views += view->train ? 0 : 1;
  if (view->parent == 0) return;
  const bool begins = view->reason == Reason::kBootstrap;  // as the operator wants it
  if (view->train && !begins && !parts_.job.Sizes().Allows(view->pods.size())) {
    parts_.journal.Fail("size: " + Describe(*view) + " trains");
  }
  if (EpochNumber(view->epoch) == 1) return BeginLineage(*view);
  const ViewPtr parent = parts_.truth.Of(view->parent).view;
  if (!parent) return;
  // With allowed sizes it may shrink once more, as its proposer knows the least number of pods.
  if (view->reason == Reason::kLinkBroken && view->pods.size() < parent->pods.size() &&
      !view->train && parts_.job.allowed.empty()) {
    parts_.journal.Fail("held: " + EpochText(view->epoch) +
                        " leaves a pod out for its link and is too small");
  }
  CheckJoiners(*view, *parent);
}

// A joiner must find the others at a boundary: a state copied in the middle of a step is torn.
void Invariants::CheckJoiners(const View& view, const View& parent) {
  bool admits = std::any_of(view.ranks.begin(), view.ranks.end(), [&](const RankEntry& rank) {
    return parent.FindRank(view.pods[rank.pod].uid, rank.slot, rank.incarnation) < 0;
  });
  for (const RankEntry& rank : view.ranks) {
    if (!admits || rank.joined) continue;
    const SimPod& pod = parts_.pods[IndexOf(view.pods[rank.pod].uid)];
    const SimWorker& worker = pod.workers[rank.slot];
    bool in_parent =
        worker.alive && worker.incarnation == rank.incarnation && worker.installed == parent.epoch;
    if (in_parent && worker.boundary != parent.epoch) {
      parts_.journal.Fail("torn: " + EpochText(view.epoch) + " admits a joiner and " + pod.uid +
                          " is in the middle of a step");
    }
  }
}

// The first view of a lineage: the job goes on from what its members hold, and no living pod may
// hold more.
void Invariants::BeginLineage(const View& view) {
  const bool restart = view.reason == Reason::kBootstrap;
  std::int64_t step = restart ? 0 : -1;
  std::uint64_t hash = 0;
  for (const RankEntry& rank : view.ranks) {
    const SimWorker& worker = parts_.pods[IndexOf(view.pods[rank.pod].uid)].workers[rank.slot];
    bool holds = !restart && !rank.joined && worker.incarnation == rank.incarnation;
    if (!holds || worker.step <= step) continue;
    step = worker.step;
    hash = worker.hash;
  }
  for (const SimPod& pod : parts_.pods) {
    // A pod that leaves ends anyway. One that its own view does not list, or lists as the
    // incarnation before it lost its file, counts its state as void.
    if (pod.gone || pod.leaving || !pod.disk || !pod.disk->view) continue;
    if (pod.disk->view->FindMember(pod.uid, pod.pod.incarnation) < 0) continue;
    for (const SimWorker& worker : pod.workers) {
      if (!worker.alive || !worker.holds || worker.installed == 0) continue;
      if (worker.step > step || restart) {
        parts_.journal.Fail("I5: " + EpochText(view.epoch) + " begins at step " +
                            std::to_string(step) + ", but " + pod.uid + " lives and holds step " +
                            std::to_string(worker.step));
      }
    }
  }
  parts_.journal.coverage().steps_lost += parts_.truth.GoBackTo(step, hash);
}

bool Invariants::Healthy() const {
  const View& view = *parts_.truth.newest();
  std::size_t could_be_in = 0;
  bool all_leaving = std::all_of(view.pods.begin(), view.pods.end(), [&](const Pod& pod) {
    return parts_.pods[IndexOf(pod.uid)].leaving;
  });
  for (const SimPod& pod : parts_.pods) {
    int index = view.FindMember(pod.uid, pod.pod.incarnation);
    if (pod.gone || (pod.leaving && !all_leaving)) {
      if (index >= 0) return false;
      continue;
    }
    if (pod.leaving) continue;
    ++could_be_in;
    if (index < 0 && !parts_.job.allowed.empty()) continue;  // perhaps one too many
    if (index < 0 || !pod.up) return false;
    for (int s = 0; s < parts_.job.slots; ++s) {
      const SimWorker& worker = pod.workers[s];
      if (view.FindRank(pod.uid, s, worker.incarnation) < 0 || worker.installed != view.epoch) {
        return false;
      }
    }
  }
  const Sizes sizes = parts_.job.Sizes();
  const std::size_t size = sizes.AtMost(could_be_in);
  if (!sizes.allowed.empty() && view.pods.size() != (size > 0 ? size : could_be_in)) return false;
  if (view.train != sizes.MayTrain(view.pods.size())) return false;
  if (view.train) return parts_.truth.Of(view.epoch).last_step > parts_.events.now() - 400 * kMs;
  for (const RankEntry& rank : view.ranks) {
    const SimPod& pod = parts_.pods[IndexOf(view.pods[rank.pod].uid)];
    if (pod.workers[rank.slot].boundary != view.epoch) return false;
  }
  return true;
}

// Whether the job is right not to train: a pod is not proven dead, so it may live, and of the
// newest view too few pods live to decide its successor, or none that holds the state. The newest
// view is the newest that any pod still knows, as the pods that decided a newer one may have lost
// their files.
bool Invariants::RightlyBlocked(bool operators_know_a_view) const {
  bool anybody = false, unproven = false;
  for (std::size_t i = 0; i < parts_.pods.size(); ++i) {
    anybody = anybody || (!parts_.pods[i].gone && !parts_.pods[i].leaving);
    unproven = unproven || (parts_.pods[i].gone && parts_.pods[i].started &&
                            !parts_.pods[i].ProvenDead(parts_.events.now()));
  }
  if (!anybody) return true;
  ViewPtr known = parts_.record.record().view;
  std::uint64_t promised = parts_.record.record().lineage;
  for (const SimPod& pod : parts_.pods) {
    if (pod.gone || !pod.up) continue;
    promised = std::max(promised, pod.member->state().lineage);
    if (EpochOf(pod.member->current()) > EpochOf(known)) known = pod.member->current();
  }
  // The record is gone, and nobody remembers a view: a person has to begin the job again.
  if (known == nullptr && !operators_know_a_view) return true;
  if (!unproven) return false;
  if (known == nullptr || promised > EpochLineage(known->epoch)) return true;
  const View& view = *known;
  std::size_t votes = 0;
  bool all = true;
  bool holder = false;
  for (std::size_t p = 0; p < view.pods.size(); ++p) {
    const SimPod& pod = parts_.pods[IndexOf(view.pods[p].uid)];
    bool there = !pod.gone && pod.pod.incarnation == view.pods[p].incarnation;
    bool resigned =
        there && pod.disk->view && pod.disk->view->epoch == view.epoch && pod.disk->resigned;
    votes += there && !resigned ? 1 : 0;
    all = all && there;
    for (const RankEntry& rank : view.ranks) {
      const SimWorker& worker = pod.workers[rank.slot];
      bool holds = !rank.joined || parts_.truth.Of(view.epoch).ran;
      if (rank.pod == p && there && !resigned && worker.alive &&
          worker.incarnation == rank.incarnation && holds) {
        holder = true;
      }
    }
  }
  if (!holder || votes == 0) return true;
  const std::size_t record = view.pods.size() % 2 == 0 ? 1 : 0;
  const std::size_t record_votes = parts_.record.record().view != nullptr ? record : 0;
  bool majority = (votes + record_votes) * 2 > view.pods.size() + record;
  return !majority && !all;
}

}  // namespace ringmaster::membership::sim
