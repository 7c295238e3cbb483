// Part of phase 5: asks cluster-autoscaler by a ProvisioningRequest for nodes for all pods that the
// job needs to start. While it is open no pod is created for it; when capacity is booked they are.
#include <fmt/format.h>

#include <algorithm>

#include "operator/planner/phases.h"

namespace ringmaster::planner {
namespace {

using provisioning::RequestFacts;
using provisioning::RequestStage;

// What is refused is asked for anew after this pause, and then more and more rarely.
constexpr std::chrono::seconds kFirstRetry{60};
constexpr std::chrono::seconds kLastRetry{1800};
// The autoscaler's own words about its last try are better than that the time is over.
constexpr std::chrono::seconds kLastWords{60};

// For how many pods the job needs nodes, besides pods that start without `request`.
int Needed(const Snapshot& in, const PodSets& pods, const std::string& request) {
  const auto others = std::count_if(
      pods.active.begin(), pods.active.end(),
      [&](const PodFacts* pod) { return request.empty() || pod->consumes != request; });
  return LeastTogether(in) - static_cast<int>(others);
}

bool HasNodesForLeast(const Snapshot& in, const PodSets& pods) {
  return std::count_if(pods.active.begin(), pods.active.end(),
                       [](const PodFacts* pod) { return pod->scheduled; }) >= LeastTogether(in);
}

// The request for the pods that the job needs now; null: there is none.
const RequestFacts* CurrentRequest(const Snapshot& in, const PodSets& pods) {
  // A job in a queue has Kueue's requests, and nobody counts room for one in a PodGroup.
  if (!in.requests || !in.gang_fit || in.queue || HasNodesForLeast(in, pods)) return nullptr;
  const provisioning::Requests& requests = *in.requests;
  for (auto at = requests.own.rbegin(); at != requests.own.rend(); ++at) {
    const bool same_pods = requests.digest.empty() || at->digest == requests.digest;
    if (at->deleting || !same_pods || at->class_name != requests.class_name) continue;
    if (at->count == Needed(in, pods, at->name)) return &*at;
  }
  return nullptr;
}

// What it has booked, if anything, is lost, or it will never book anything.
bool IsOver(const RequestFacts& request) {
  return request.stage == RequestStage::kFailed || request.stage == RequestStage::kBookingExpired ||
         request.stage == RequestStage::kCapacityRevoked;
}

struct Refusal {
  Time since;
  std::string why;
};

// nullopt: the request is still open, or capacity is booked.
std::optional<Refusal> RefusalOf(const Snapshot& in, const RequestFacts& request) {
  // The autoscaler's clock, or what it writes, may be wrong.
  const Time since = request.since <= in.now ? request.since : request.created;
  switch (request.stage) {
    case RequestStage::kFailed:
      return Refusal{since, "has failed: " + request.why};
    case RequestStage::kBookingExpired:
      return Refusal{since, "has booked capacity for too short a time: " + request.why};
    case RequestStage::kCapacityRevoked:
      return Refusal{since, "has lost its capacity: " + request.why};
    default:
      break;
  }
  // Pods that relied on it have found no nodes, and are gone.
  const auto given_back = api::ParseTime(in.job.status.last_given_back_time);
  if (given_back && request.created <= *given_back) {
    return Refusal{*given_back, "has brought too few nodes in time"};
  }
  if (request.stage == RequestStage::kProvisioned || !in.nodes_within) return std::nullopt;
  const Time by = request.created + *in.nodes_within + kLastWords;
  if (in.now < by) return std::nullopt;
  return Refusal{by, fmt::format("was not provisioned within {} s{}{}", in.nodes_within->count(),
                                 request.why.empty() ? "" : ": ", request.why)};
}

Time RetryAt(const Refusal& refusal, int attempt) {
  const int doublings = std::clamp(attempt - 1, 0, 5);
  return refusal.since + std::min(kFirstRetry * (1 << doublings), kLastRetry);
}

std::string NameOf(const RequestFacts& request) {
  return fmt::format("ProvisioningRequest {} ({}, {})", request.name, request.class_name,
                     Plural(static_cast<std::size_t>(std::max(request.count, 0)), "pod"));
}

std::string Progress(const Snapshot& in, const RequestFacts& request) {
  std::string text = NameOf(request);
  if (request.stage == RequestStage::kProvisioned) {
    text += " has booked capacity since " + api::FormatTime(request.since);
  } else {
    text += request.stage == RequestStage::kAccepted ? " is accepted" : " is not accepted yet";
    text += ", made at " + api::FormatTime(request.created);
    if (in.nodes_within) {
      text += fmt::format("; where it is not provisioned by {} another one is made later",
                          api::FormatTime(request.created + *in.nodes_within + kLastWords));
    }
  }
  return request.why.empty() ? text : text + "; it says: " + request.why;
}

int CreateOnBooking(const RequestFacts& request, DecisionDraft& out,
                    const std::shared_ptr<const provisioning::Booking>& booking) {
  if (booking == nullptr || static_cast<int>(out.creates.size()) < booking->pods) return 0;
  for (int i = 0; i < booking->pods; ++i) {
    PodCreate& create = out.creates[static_cast<std::size_t>(i)];
    create.domain = request.domain;
    create.calls_for_nodes = true;
    create.booking = booking;
  }
  out.AddEvent(false, "NodesProvisioned",
               fmt::format("{} has booked capacity: {} may start", NameOf(request),
                           Plural(static_cast<std::size_t>(booking->pods), "pod")));
  return booking->pods;
}

// Asks for `count` pods, if it is the job's turn.
void Ask(const Snapshot& in, WaitReasons& why, DecisionDraft& out, int count, int attempt) {
  if (!in.gang_fit->calls_for_nodes) return;
  out.request = {.count = count, .attempt = attempt, .domain = in.gang_fit->domain};
  why.no_nodes.clear();
  why.for_nodes =
      fmt::format("a ProvisioningRequest ({}, {}) asks for nodes from now on",
                  in.requests->class_name, Plural(static_cast<std::size_t>(count), "pod"));
}

}  // namespace

std::shared_ptr<const provisioning::Booking> BookingOf(const Snapshot& in, const PodSets& pods) {
  const RequestFacts* request = CurrentRequest(in, pods);
  if (request == nullptr || request->stage != RequestStage::kProvisioned ||
      RefusalOf(in, *request)) {
    return nullptr;
  }
  const auto consume =
      std::count_if(pods.active.begin(), pods.active.end(),
                    [&](const PodFacts* pod) { return pod->consumes == request->name; });
  const int left = request->count - static_cast<int>(consume);
  if (left <= 0) return nullptr;
  return std::make_shared<const provisioning::Booking>(
      provisioning::Booking{request->name, request->class_name, left});
}

void ObserveRequest(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out,
                    bool has_members) {
  if (!in.requests || !in.requests->problem.empty()) return;
  // No autoscaler makes nodes for a pod that names a request, so a pod whose request is over
  // becomes one like any other.
  const auto stands = [&](const std::string& name) {
    const auto& own = in.requests->own;
    return std::any_of(own.begin(), own.end(), [&](const RequestFacts& request) {
      return request.name == name && !request.deleting && !IsOver(request);
    });
  };
  for (const PodFacts* pod : pods.active) {
    if (pod->scheduled || pod->consumes.empty() || stands(pod->consumes)) continue;
    out.annotations.push_back({pod->name, provisioning::kConsumeAnnotation, ""});
  }
  const RequestFacts* request = CurrentRequest(in, pods);
  if (request == nullptr) return;
  const auto refusal = RefusalOf(in, *request);
  if (!refusal) {
    out.calls_for_nodes = out.calls_for_nodes || !has_members;
    if (!why.for_nodes.empty()) why.for_nodes += "; " + Progress(in, *request);
    return;
  }
  const Time retry_at = RetryAt(*refusal, request->attempt);
  out.may_call = in.now >= retry_at;
  if (!out.may_call) out.LookAgainAt(retry_at);
}

int RequestNodes(const Snapshot& in, const PodSets& pods, WaitReasons& why, DecisionDraft& out,
                 int least) {
  if (out.gang_state == scheduler::GangState::kRuns) return 0;
  if (!in.requests->problem.empty()) {
    if (in.gang_fit->calls_for_nodes) why.no_nodes = in.requests->problem;
    return 0;
  }
  const RequestFacts* request = CurrentRequest(in, pods);
  if (request == nullptr) {
    Ask(in, why, out, least, 1);
    return 0;
  }
  if (const auto refusal = RefusalOf(in, *request)) {
    const Time retry_at = RetryAt(*refusal, request->attempt);
    why.no_nodes = fmt::format(
        "{} {}; another one is made {}", NameOf(*request), refusal->why,
        in.now < retry_at ? "at " + api::FormatTime(retry_at) : "when it is the job's turn");
    if (in.now >= retry_at) Ask(in, why, out, least, request->attempt + 1);
    return 0;
  }
  why.for_nodes = Progress(in, *request);
  if (request->stage != RequestStage::kProvisioned) {
    if (in.nodes_within) out.LookAgainAt(request->created + *in.nodes_within + kLastWords);
    return 0;
  }
  return in.gang_fit->decided ? CreateOnBooking(*request, out, BookingOf(in, pods)) : 0;
}

void DropRequests(const Snapshot& in, const PodSets& pods, DecisionDraft& out, bool waits) {
  if (!in.requests) return;
  const RequestFacts* keep = waits && !out.request ? CurrentRequest(in, pods) : nullptr;
  for (const RequestFacts& request : in.requests->own) {
    if (&request == keep || request.deleting) continue;
    out.request_drops.push_back({request.name, request.uid});
  }
}

}  // namespace ringmaster::planner
