#include "operator/scheduler/node_calls.h"

#include <algorithm>

#include "operator/scheduler/what_if.h"

namespace ringmaster::scheduler {
namespace {

constexpr int kMostCallersTried = 16;  // in one pass: each costs a look at all nodes

}  // namespace

bool NodeCalls::SetCalling(const std::string& job, bool calls, bool alone) {
  if (!calls) return calling_.erase(job) != 0;
  return calling_.insert_or_assign(job, alone).second;
}

void NodeCalls::Decide(const std::vector<WaitingJob*>& line, bool room_is_made, Moment now) {
  look_again_.reset();
  tried_ = 0;
  if (!rules_.calls) return;
  turns_ = calling_.size();
  taken_by_one_ =
      std::any_of(calling_.begin(), calling_.end(), [](const auto& c) { return c.second; });
  std::vector<WaitingJob*> lack;
  for (WaitingJob* waiting : line) {
    if (!Lacks(waiting, now)) continue;
    // A job that was told that it may call has perhaps begun to, so it counts.
    if (waiting->answer.calls_for_nodes) {
      CountTurn(*waiting);
    } else {
      lack.push_back(waiting);
    }
  }
  if (room_is_made) return;
  bool closed = false;  // true: a job waits for its turn, and no job behind it may pass it
  for (WaitingJob* waiting : lack) {
    if (!KnowsWhere(*waiting)) continue;
    if (NeedsTurn(*waiting)) closed = closed || !IsTurnOf(*waiting);
    if ((closed && NeedsTurn(*waiting)) || !MayCall(*waiting, now)) continue;
    waiting->answer.calls_for_nodes = true;
    CountTurn(*waiting);
  }
}

void NodeCalls::CountTurn(const WaitingJob& waiting) {
  if (!NeedsTurn(waiting)) return;
  ++turns_;
  taken_by_one_ = taken_by_one_ || waiting.request.calls_alone;
}

bool NodeCalls::IsTurnOf(const WaitingJob& waiting) const {
  const std::size_t most = waiting.request.calls_alone ? 1 : rules_.jobs_at_once;
  return !taken_by_one_ && turns_ < most;
}

// Returns true if the job has lacked room for long enough.
bool NodeCalls::Lacks(WaitingJob* waiting, Moment now) {
  const GangFit& answer = waiting->answer;
  if (!waiting->CanNotStart() || !answer.decided || !answer.leavers.empty()) {
    waiting->lacks_since.reset();
    waiting->answer.calls_for_nodes = false;
    return false;
  }
  if (!waiting->lacks_since) waiting->lacks_since = now;
  if (!waiting->request.may_call) {
    waiting->answer.calls_for_nodes = false;
    return false;
  }
  const Moment due = *waiting->lacks_since + rules_.after;
  if (now >= due) return true;
  look_again_ = std::min(look_again_.value_or(due), due);
  return false;
}

// A job that holds pods, which are of no use without the rest, calls without waiting for a turn.
bool NodeCalls::NeedsTurn(const WaitingJob& waiting) const {
  return waiting.request.state == GangState::kWaits && calling_.count(waiting.request.job) == 0;
}

// Pods that must be in one domain have to be told which, and the domain of a future node is
// unknown.
bool NodeCalls::KnowsWhere(const WaitingJob& waiting) {
  return !waiting.request.near.required || !waiting.answer.domain.empty();
}

bool NodeCalls::MayCall(const WaitingJob& waiting, Moment now) {
  if (tried_++ >= kMostCallersTried) return false;
  return !Fits(waiting, now);
}

// Returns true if there is room for the job, but it is kept for another job or about to be free.
bool NodeCalls::Fits(const WaitingJob& waiting, Moment now) {
  WhatIf what_if(&capacity_);
  std::optional<Moment> gone_by;
  for (const auto& [uid, by] : capacity_.placed().leaving()) {
    if (now >= by) continue;  // the pod is late in leaving
    what_if.TakeOut(uid);
    gone_by = std::min(gone_by.value_or(by), by);
  }
  const AdmissionRequest& request = waiting.request;
  for (int i = waiting.answer.fit; i < request.Least(); ++i) {
    const auto node = capacity_.nodes().Place(*waiting.shapes[i]);
    if (!node) return false;
    what_if.Hold(*request.pods[i], waiting.shapes[i], *node, request.job);
  }
  if (gone_by) look_again_ = std::min(look_again_.value_or(*gone_by), *gone_by);
  return true;
}

}  // namespace ringmaster::scheduler
