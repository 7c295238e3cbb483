#include "tests/sim/invariants.h"

#include <algorithm>

namespace ringmaster::app::sim {
namespace {

using membership::EpochText;

}  // namespace

// ---- Views

// Somebody takes this view as decided.
void Invariants::Announce(const ViewPtr& view) {
  Decided& known = parts_.views.Of(view->epoch);
  if (known.view != nullptr) {
    if (*known.view != *view)
      parts_.journal.Fail("I2: two views " + EpochText(view->epoch) + ": [" +
                          membership::Describe(*known.view) + "] and [" +
                          membership::Describe(*view) + "]");
    return;
  }
  parts_.journal.Trace([&] { return "decided: " + membership::Describe(*view); });
  parts_.views.Add(view);
  ++parts_.journal.coverage().views;
  parts_.journal.coverage().planned_views += view->planned ? 1 : 0;
  parts_.journal.coverage().held_views += view->train ? 0 : 1;
  if (membership::EpochNumber(view->epoch) == 1 && membership::EpochLineage(view->epoch) > 1)
    return BeginLineage(*view);  // it may know of no view before it
  if (view->parent == 0) return;
  const ViewPtr& before = parts_.views.Of(view->parent).view;
  if (view->reason == membership::Reason::kLinkBroken && !view->planned && before != nullptr) {
    const bool smaller = view->pods.size() < before->pods.size();
    ++(smaller ? parts_.journal.coverage().left_out : parts_.journal.coverage().reconnects);
    // With allowed sizes it may shrink once more, as its proposer knows the least number of pods.
    if (smaller && !view->train && parts_.job.allowed.empty())
      parts_.journal.Fail("held: " + EpochText(view->epoch) +
                          " leaves a pod out for its link and is too small");
  }
  if (const ViewPtr parent = parts_.views.Of(view->parent).view) CheckTorn(*view, *parent);
}

// A joiner must find the others at a boundary: a state copied in the middle of a step is torn.
void Invariants::CheckTorn(const membership::View& view, const membership::View& parent) {
  const bool admits =
      std::any_of(view.ranks.begin(), view.ranks.end(), [&](const membership::RankEntry& rank) {
        return parent.FindRank(view.pods[rank.pod].uid, rank.slot, rank.incarnation) < 0;
      });
  for (const membership::RankEntry& rank : view.ranks) {
    if (!admits || rank.joined) continue;
    const WorkerPtr worker = parts_.pods.Find(IndexOf(view.pods[rank.pod].uid),
                                              static_cast<int>(rank.slot), rank.incarnation);
    if (worker != nullptr && worker->alive && worker->epoch == parent.epoch &&
        worker->boundary_epoch != parent.epoch) {
      parts_.journal.Fail("torn: " + EpochText(view.epoch) + " admits a joiner and " +
                          parts_.pods.NameOf(*worker) + " is in the middle of a step");
    }
  }
}

// The first view of a lineage: the job goes on from what its members hold, and no living pod may
// hold more.
void Invariants::BeginLineage(const membership::View& view) {
  const bool restart = view.reason == membership::Reason::kBootstrap;
  std::int64_t step = 0;
  std::uint64_t lowest = restart ? 0 : agreement_.final_number();
  for (const WorkerPtr& worker : parts_.pods.RanksOf(view)) {
    if (restart || worker == nullptr || !worker->holds) continue;
    step = std::max(step, worker->step);
    lowest = std::min(lowest, worker->log.next_number());
  }
  for (const auto& pod : parts_.pods) {
    if (pod->gone || pod->leaving || !pod->disk || pod->disk->view == nullptr) continue;
    if (pod->disk->view->FindMember(pod->uid, pod->disk->incarnation) < 0) continue;
    for (const Child& child : pod->launcher.children) {
      const Worker& worker = *child.worker;
      const bool counts = worker.alive && worker.holds && worker.ran != 0 && !worker.ended;
      if (counts && (worker.step > step || restart))
        parts_.journal.Fail("I5: " + EpochText(view.epoch) + " begins at step " +
                            std::to_string(step) + ", but " + parts_.pods.NameOf(worker) +
                            " lives and holds step " + std::to_string(worker.step));
    }
  }
  agreement_.BeginLineage(lowest);
}

// ---- What a pod promises

// Whether the worker may complete a step in a view up to this one.
bool Invariants::MayUse(const Worker& worker, Epoch epoch) const {
  if (!worker.alive || worker.ended) return false;
  // Its fence comes first when it wakes.
  const bool fenced = worker.answered != 0 && parts_.time.now() >= worker.answered + 10 * kSecond;
  if (fenced && parts_.pods.Frozen(worker)) return false;
  // A view whose successor is decided completes no step, whatever its workers do.
  if (worker.phase != Phase::kNoView && worker.epoch <= epoch && !parts_.views.IsOver(worker.epoch))
    return true;
  const Stream* stream = parts_.pods.streams().Find(worker.stream);
  if (stream == nullptr) return false;
  return std::any_of(stream->views.begin(), stream->views.end(), [&](Epoch view) {
    return view <= epoch && view > worker.stopped && view > worker.epoch &&
           !parts_.views.IsOver(view);
  });
}

void Invariants::CheckNobodyUses(int index, Epoch epoch, const std::string& when) {
  for (const Child& child : parts_.pods[index]->launcher.children) {
    if (MayUse(*child.worker, epoch))
      parts_.journal.Fail(parts_.pods[index]->uid + " " + when + ", and " +
                          parts_.pods.NameOf(*child.worker) + " may still use " +
                          EpochText(child.worker->epoch));
  }
}

void Invariants::CheckPromise(int index, const membership::PersistentState& state) {
  if (state.view == nullptr) return;
  const auto& before = parts_.pods[index]->disk;
  const bool same = before && membership::EpochOf(before->view) == state.view->epoch;
  const bool accepts =
      state.accepted_value != nullptr &&
      !(same && before->accepted_value != nullptr && before->accepted == state.accepted);
  const bool resigns = state.resigned && !(same && before->resigned);
  if (accepts)
    CheckNobodyUses(index, state.view->epoch,
                    "accepts a successor of " + EpochText(state.view->epoch));
  if (!resigns) return;
  ++parts_.journal.coverage().resignations;
  CheckNobodyUses(index, state.view->epoch, "resigns from " + EpochText(state.view->epoch));
}

// ---- Operations. A vote is the moment to look: all ranks of the view have come to it, so nobody
// is without what came before.

void Invariants::CheckVote(const Stage& stage, const membership::View& view) {
  const Given& first = stage.given.front();
  for (const Given& given : stage.given) agreement_.CheckSame(first, given, view.epoch);
  const std::vector<WorkerPtr> ranks = parts_.pods.RanksOf(view);
  const bool ends = parts_.script.AsksForEnd(first.done);
  // One that has given its part and left the view since takes part in nothing that comes after: the
  // others can leave this vote, and no later one.
  const bool all = std::all_of(ranks.begin(), ranks.end(), [&](const WorkerPtr& worker) {
    return InView(worker, view.epoch) && worker->phase != Phase::kBroken;
  });
  if (all) CheckOver(view);
  agreement_.CheckFinal(first, view.epoch, all);
  if (!ends) return;
  parts_.views.Of(view.epoch).last_step = parts_.time.now();
  ++parts_.journal.coverage().steps;
  parts_.journal.Trace(
      [&] { return "step " + std::to_string(first.step + 1) + " in " + EpochText(view.epoch); });
}

// All ranks of the view take part in it: so no view may have been decided that follows.
void Invariants::CheckOver(const membership::View& view) {
  const std::string name = EpochText(view.epoch);
  if (const auto later = parts_.views.SuccessorOf(view.epoch))
    parts_.journal.Fail("I3: " + name + " goes on after " + EpochText(*later) + " was decided");
  const Epoch before = parts_.views.Train(view.epoch);
  if (view.epoch < before)
    parts_.journal.Fail("I3: " + name + " goes on after " + EpochText(before));
  for (const WorkerPtr& worker : parts_.pods.RanksOf(view)) {
    if (worker->stopped >= view.epoch)
      parts_.journal.Fail(parts_.pods.NameOf(*worker) + " goes on in a view that it has stopped");
  }
}

}  // namespace ringmaster::app::sim
