#include "common/membership/successor.h"

#include <algorithm>
#include <utility>

namespace ringmaster::membership {

ViewPtr SuccessorFromFacts::Successor(bool without_self) const {
  const std::vector<int> accused = PodsToDrop(parts_.peers->accusations(), parts_.state->self());
  Change change = KnownChange(without_self, accused);
  if (change.planned) return AtBoundary(std::move(change));
  ViewPtr next = AfterFault(std::move(change), accused);
  if (next != nullptr && sizes_.AtMost(next->pods.size()) > 0) return next;
  // Without the pods that are accused for a broken link, the next view would not train, or nobody
  // in it would hold the state. So they stay, and the job goes on as soon as the link works.
  const std::vector<int> silent = AccusedOfSilence();
  if (silent == accused) return next;
  return AfterFault(KnownChange(without_self, silent), silent);
}

std::vector<int> SuccessorFromFacts::AccusedOfSilence() const {
  return PodsToDrop(parts_.peers->hearsay().counted(), parts_.state->self());
}

bool SuccessorFromFacts::ChangeWanted() const {
  const View& view = parts_.state->view();
  const std::size_t leaving = parts_.drains->LeavingPods(view).size();
  if (leaving > 0 && leaving < view.pods.size()) return true;
  if (view.train != sizes_.MayTrain(view.pods.size())) return true;
  if (sizes_.ShrinksTo(view.pods.size()) > 0) return true;
  return parts_.applicants->Complete() && AdmitsSomebody();
}

// Applicants may have to wait for others, until together they make a number that may train.
bool SuccessorFromFacts::AdmitsSomebody() const {
  if (sizes_.allowed.empty()) return true;
  Change change = KnownChange(false, {});
  change.planned = true;
  change.joiners = parts_.applicants->Admissible();
  const ViewPtr next = AtBoundary(std::move(change));
  return next != nullptr && std::any_of(next->ranks.begin(), next->ranks.end(),
                                        [](const RankEntry& rank) { return rank.joined; });
}

Change SuccessorFromFacts::KnownChange(bool without_self, const std::vector<int>& accused) const {
  const View& view = parts_.state->view();
  const std::size_t pods = view.pods.size();
  const int self = parts_.state->self();
  Change change;
  change.proposer = parts_.state->uid();
  change.sizes = sizes_;
  change.ran = parts_.ranks->ran();
  change.held = parts_.ranks->held();
  change.lost_worker = parts_.ranks->lost();
  change.gone.assign(pods, false);
  change.draining.assign(pods, false);
  bool fault = parts_.ranks->AnyLost();
  for (std::size_t i = 0; i < pods; ++i) {
    const int pod = static_cast<int>(i);
    change.gone[i] = parts_.peers->Gone(pod);
    change.draining[i] = parts_.drains->Contains(view.pods[i].uid);
    change.pod_lost = change.pod_lost || parts_.peers->Lost(pod);
    fault = fault || change.gone[i];
  }
  change.link_broken = parts_.peers->links().broken() && !fault && !without_self &&
                       parts_.peers->hearsay().counted().empty();
  fault = fault || parts_.peers->links().broken();
  for (int pod : accused) change.gone[pod] = fault = true;
  change.pod_lost = change.pod_lost || (!accused.empty() && !change.link_broken);
  if (without_self) {
    change.gone[self] = fault = true;
  } else {
    // What other members think of this one does not make it drop itself.
    change.gone[self] = change.gone[self] && parts_.state->stored().resigned;
  }
  const bool boundary = parts_.plan->AllAtBoundary() || !Holds(Clause::kBoundaryFirst);
  change.planned = !fault && parts_.state->is_coordinator() && boundary;
  if (change.planned || !Holds(Clause::kFaultAdmitsNobody)) {
    change.joiners = parts_.applicants->Admissible();
  }
  return change;
}

ViewPtr SuccessorFromFacts::AfterFault(Change change, const std::vector<int>& accused) const {
  const View& view = parts_.state->view();
  ViewPtr next = NextView(view, change, without_);
  if (next || accused.empty()) return next;
  // Only the accused pods hold the state. An accusation may be wrong and must not lose the state,
  // so they stay, unless this member itself knows that they are gone.
  for (int pod : accused) change.gone[pod] = parts_.peers->Gone(pod);
  return NextView(view, change, without_);
}

ViewPtr SuccessorFromFacts::AtBoundary(Change change) const {
  const View& view = parts_.state->view();
  for (std::size_t i = 0; i < change.gone.size(); ++i) {
    if (change.draining[i]) change.gone[i] = change.drained = true;
  }
  ViewPtr next = NextView(view, change, without_);
  if (next || !change.drained) return next;
  // No pod would be left: the draining ones stay.
  change.gone.assign(change.gone.size(), false);
  change.drained = false;
  return NextView(view, change, without_);
}

}  // namespace ringmaster::membership
