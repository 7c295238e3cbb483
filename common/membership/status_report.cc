#include "common/membership/status_report.h"

#include <utility>

namespace ringmaster::membership {

void StatusReport::Check() {
  const TimePoint now = parts_.outbox->now();
  if (!parts_.state->in_view() || parts_.workers->finishing()) {
    repeat_.Stop();
    return;
  }
  if (repeat_.at && !repeat_.Due(now)) return;
  const std::size_t before = parts_.outbox->size();
  if (parts_.state->stored().resigned) {
    parts_.outbox->SendToMembers(parts_.succession->ResignMessage());
  } else {
    SendToAll();
    if (!parts_.state->is_coordinator()) SendToCoordinator();
  }
  if (parts_.outbox->size() == before) {
    repeat_.Stop();
  } else {
    repeat_.Again(now, retry_);
  }
}

// All members must know of a lost worker, not only the coordinator. If it was the last one that
// held the state, no view can follow, and the operator has to begin a new lineage. It does not as
// long as a pod that has not heard of the loss says that it is able to train.
void StatusReport::SendToAll() {
  Message lost = parts_.outbox->MakeMessage(MessageKind::kWorkersLost);
  lost.workers = parts_.ranks->LostOf(parts_.state->self());
  if (!lost.workers.empty()) parts_.outbox->SendToMembers(lost);
}

void StatusReport::SendToCoordinator() {
  const View& view = parts_.state->view();
  Outbox& outbox = *parts_.outbox;
  Message silent = outbox.MakeMessage(MessageKind::kSuspect);
  silent.pods = parts_.peers->SuspectedPods();
  const int coordinator = parts_.state->FindPod(view.coordinator);
  const bool reachable = coordinator >= 0 && !parts_.peers->suspected(coordinator);
  if (!silent.pods.empty() && reachable) outbox.SendTo(view.coordinator, std::move(silent));

  if (parts_.peers->links().broken()) {
    Message broken = outbox.MakeMessage(MessageKind::kSuspect);
    for (const int pod : parts_.peers->links().AccusedBy(parts_.state->self())) {
      broken.pods.push_back(view.pods[pod].uid);
    }
    broken.number = 1;
    outbox.SendTo(view.coordinator, std::move(broken));
  }

  if (parts_.plan->at_boundary(parts_.state->self())) {
    Message boundary = outbox.MakeMessage(MessageKind::kBoundary);
    boundary.number = parts_.plan->number_heard();
    outbox.SendTo(view.coordinator, std::move(boundary));
  }
  Message leave = outbox.MakeMessage(MessageKind::kLeave);
  leave.pods = parts_.drains->LeavingPods(view);
  if (!leave.pods.empty()) outbox.SendTo(view.coordinator, std::move(leave));
}

}  // namespace ringmaster::membership
