#include "sidecar/app/peer_monitor.h"

#include <utility>

#include "common/logging/log.h"
#include "common/membership/message_json.h"

namespace ringmaster::app {
namespace {

using membership::EpochText;

constexpr char kAllGone[] = "the connections to its sidecar and to a worker of it are closed";

}  // namespace

PeerMonitor::PeerMonitor(std::string pod_uid, AgentClock clock, PeerOutputs outputs,
                         MembershipLoop* membership, const Departure* departure,
                         RebuildTracker* rebuilds)
    : pod_uid_(std::move(pod_uid)),
      clock_(std::move(clock)),
      outputs_(std::move(outputs)),
      membership_(membership),
      departure_(departure),
      rebuilds_(rebuilds),
      accusations_(outputs_.look_around) {}

void PeerMonitor::EnterView(const membership::View& view) {
  // Also where nothing is sent or read before the view after this one is decided.
  changes_.Know(membership_->member().current());
  const bool listed = view.FindPod(pod_uid_) >= 0;
  Watch(listed ? view.pods : std::vector<membership::Pod>{});
  ring_.EnterView(view);
  accusations_.EnterView();
}

std::vector<BrokenLink> PeerMonitor::BrokenLinks() const {
  return ring_.Links(membership_->installed().get(), membership_->member().min_pods(),
                     clock_.now());
}

void PeerMonitor::OnMessage(const std::string& body, const std::string& from,
                            const std::string& address) {
  std::string change;
  auto message = membership::DecodeMessage(body, &change);
  if (!message || message->from != from) {
    logging::Warn("message refused from={} error=\"{}\"", from,
                  message ? "its sender is another" : message.error());
    return;
  }
  if (!change.empty() && !TakeChange(change, &*message)) return;
  if (IsAccusation(*message)) {
    // What is kept of accusations grows with the view, whatever is sent.
    if (membership_->installed()->FindPod(message->from) < 0) return;
    std::erase_if(message->pods, [&](const std::string& pod) {
      return membership_->installed()->FindPod(pod) < 0;
    });
    if (message->pods.empty() || !accusations_.MayBelieve(message->pods)) return;
    Say(*message);
  }
  membership_->Feed(membership::MessageReceived{std::move(*message), address});
}

bool PeerMonitor::TakeChange(const std::string& change, membership::Message* message) {
  changes_.Know(membership_->member().current());
  message->value = changes_.Decode(change, message->from);
  if (message->value) return true;
  // Whoever decides a view knows it; of other messages the sender is in the view that they are
  // about. This member has a view before or after that one.
  const bool decided = message->kind == membership::MessageKind::kDecided;
  logging::Debug("a view can't be read from={} kind={}", message->from,
                 membership::MessageKindText(message->kind));
  membership_->Feed(membership::PodHeard{message->from, message->view + (decided ? 1 : 0)});
  return false;
}

// Of the silence of pods of this view.
bool PeerMonitor::IsAccusation(const membership::Message& message) const {
  const ViewPtr& installed = membership_->installed();
  return message.kind == membership::MessageKind::kSuspect && message.number != 1 &&
         installed != nullptr && message.view == installed->epoch;
}

// Otherwise nobody could tell for whose word a pod that lives was left out.
void PeerMonitor::Say(const membership::Message& accusation) {
  for (const std::string& pod : accusation.pods) {
    if (!accusations_.IsNews(accusation.from, pod)) continue;
    logging::Info("pod accused pod={} by={} reason=\"it is not heard\" epoch={}", pod,
                  accusation.from, EpochText(accusation.view));
  }
}

void PeerMonitor::OnRecordAnswer(const std::string& body) {
  auto message = membership::DecodeMessage(body);
  if (!message) return logging::Warn("record's answer refused error=\"{}\"", message.error());
  membership_->Feed(membership::RecordAnswered{std::move(*message)});
}

void PeerMonitor::OnSuspect(const std::string& pod, const std::string& why) {
  if (departure_->finishing()) return;
  logging::Info("pod suspected pod={} reason=\"{}\" epoch={}", pod, why,
                EpochText(membership_->epoch()));
  membership_->Feed(membership::PodSuspected{pod, why});
}

// A sidecar alone may come back before it is missed. If a worker of its pod is gone as well, the
// pod is.
void PeerMonitor::OnUnreachable(const std::string& pod, const std::string& why) {
  const ViewPtr& installed = membership_->installed();
  if (departure_->finishing() || installed == nullptr) return;
  logging::Info("sidecar unreachable pod={} reason=\"{}\" epoch={}", pod, why,
                EpochText(membership_->epoch()));
  if (ring_.Accuse(*installed, installed->FindPod(pod))) OnSuspect(pod, kAllGone);
}

void PeerMonitor::OnHeard(const std::string& pod, Epoch epoch, uint64_t step) {
  // Steps of an older view may be void by now.
  if (epoch == membership_->epoch()) rebuilds_->SawStep(step);
  membership_->Feed(membership::PodHeard{pod, epoch});
}

void PeerMonitor::OnWorkerSuspects(Epoch epoch, int rank, const std::string& reason) {
  const ViewPtr& installed = membership_->installed();
  if (installed == nullptr || epoch != installed->epoch) return;
  if (rank < 0 || rank >= static_cast<int>(installed->ranks.size())) return;
  logging::Info("worker suspects rank={} reason=\"{}\" epoch={}", rank, reason, EpochText(epoch));
  ring_.Suspect(epoch, rank, clock_.now());
  const std::string pod = installed->pods[installed->ranks[rank].pod].uid;
  if (pod != pod_uid_ && outputs_.unreachable(pod)) OnSuspect(pod, kAllGone);
}

void PeerMonitor::OnWorkerBroken(Epoch epoch, int rank, const std::string& reason) {
  const ViewPtr& installed = membership_->installed();
  if (installed == nullptr || epoch != installed->epoch) return;
  if (rank < -1 || rank >= static_cast<int>(installed->ranks.size())) return;
  logging::Info("ring broken rank={} reason=\"{}\" epoch={}", rank, reason, EpochText(epoch));
  ring_.Broke(epoch, rank, clock_.now());
}

void PeerMonitor::Deliver(const membership::Send& send) {
  outputs_.deliver(send.to, send.address, send.message, changes_.Encode(send.message, send.to));
  changes_.Know(membership_->member().current());
}

void PeerMonitor::CheckSuspicions() {
  if (membership_->installed() == nullptr || departure_->finishing() || departure_->left()) return;
  const std::vector<membership::Pod> pods = membership_->installed()->pods;
  for (const membership::Pod& pod : pods) {
    if (pod.uid != pod_uid_ && outputs_.suspects(pod.uid))
      membership_->Feed(membership::PodSuspected{pod.uid, "silent"});
  }
  CheckRing();
}

void PeerMonitor::CheckRing() {
  if (membership_->member().changing()) return;
  const ViewPtr view = membership_->installed();
  const auto trouble = ring_.TakeLasting(*view, pod_uid_, clock_.now());
  if (!trouble) return;
  std::string pods;
  for (const membership::Pod& pod : trouble->pods) pods += (pods.empty() ? "" : ",") + pod.name;
  const bool again = !trouble->accused.empty();
  const std::uint32_t min_pods = membership_->member().min_pods();
  logging::Warn("ring broken though nobody is known to have died pods={} again={} epoch={}",
                pods.empty() ? "unknown" : pods, again, EpochText(view->epoch));
  if (again && view->pods.size() <= min_pods) {
    logging::Warn(
        "no pod is left out for its broken link pods={} reason=\"the view has {} pods and "
        "minReplicas is {}: all connect anew, ever more rarely\"",
        pods, view->pods.size(), min_pods);
  }
  membership_->Feed(membership::LinkBroken{view->epoch, trouble->accused});
}

}  // namespace ringmaster::app
