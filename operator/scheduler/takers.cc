#include "operator/scheduler/takers.h"

#include <algorithm>
#include <utility>

#include "operator/api/object_key.h"
#include "operator/scheduler/whole_jobs.h"

namespace ringmaster::scheduler {
namespace {

constexpr std::size_t kMostTakersTried =
    16;  // in one pass: each costs a look at all nodes and pods
// At most this many passes follow each other because jobs that take pods influence each other's
// decisions.
constexpr int kMostRepeats = 8;

}  // namespace

void Turns::BeginPass(bool changed) {
  changed_ = changed_ || (changed && begin_ > 0);
  seen_ = tried_ = failed_ = 0;
}

bool Turns::Next() {
  if (seen_++ < begin_ || tried_ >= kMostTakersTried) return false;
  ++tried_;
  return true;
}

// If all jobs have had a turn and nothing has changed since the first of them, no pass follows.
bool Turns::EndPass() {
  if (begin_ + tried_ < seen_) {
    // Jobs that have begun to take pods need no turn any more, so only failed ones are skipped.
    begin_ += std::max<std::size_t>(failed_, 1);
    return true;
  }
  return std::exchange(*this, {}).changed_;
}

bool Takers::SetHolding(Holding holding) {
  Holding& known = holdings_[holding.job];
  if (known == holding) return false;
  known = std::move(holding);
  lowest_ = LowestPriority(holdings_);
  return true;
}

bool Takers::RemoveHolding(const std::string& job) {
  if (holdings_.erase(job) == 0) return false;
  lowest_ = LowestPriority(holdings_);
  return true;
}

bool Takers::MayTake(const AdmissionRequest& request) const {
  return request.preempts && lowest_ && *lowest_ < request.priority;
}

void Takers::BeginPass(bool changed) {
  taken_before_ = TakenForOthersThan("");
  turns_.BeginPass(changed);
  if (changed) repeats_ = 0;
  look_again_.reset();
}

bool Takers::TakeFor(WaitingJob* waiting, Moment now) {
  const AdmissionRequest& request = waiting->request;
  const bool begins = !Has(request.job);
  std::vector<TakenPod> before;
  if (const auto taken = taken_.extract(request.job)) before = taken.mapped();
  if (!request.preempts || (before.empty() && !MayTake(request))) return false;
  // A job that has begun to take pods is looked at in every pass.
  if (begins && !turns_.Next()) return false;
  const auto least = static_cast<std::size_t>(request.Least());
  const Need need{request.job,
                  request.priority,
                  {request.pods.begin(), request.pods.begin() + least},
                  {waiting->shapes.begin(), waiting->shapes.begin() + least}};
  const std::set<std::string> for_others = TakenForOthersThan(request.job);
  auto preemption = Preempt({&capacity_, need, holdings_, before, for_others, now});
  if (!preemption) {
    if (begins) turns_.Failed();
    return false;
  }
  for (std::size_t i = 0; i < least; ++i) {
    capacity_.Hold(*need.pods[i], need.shapes[i], preemption->nodes[i], request.job);
    claims_.push_back(api::KeyOf(*need.pods[i]));
  }
  for (const TakenPod& pod : preemption->taken) {
    waiting->answer.leavers.push_back({pod.job, pod.name, pod.whole});
  }
  taken_[request.job] = std::move(preemption->taken);
  if (preemption->late_at) {
    look_again_ = std::min(look_again_.value_or(*preemption->late_at), *preemption->late_at);
  }
  return true;
}

void Takers::RemoveIf(const std::function<bool(const std::string& job)>& which) {
  std::erase_if(taken_, [&](const auto& taken) { return which(taken.first); });
}

bool Takers::EndPass() {
  for (const std::string& path : claims_) capacity_.Undo(path);
  claims_.clear();
  const bool turns_follow = turns_.EndPass();
  return (StaysSomething() && repeats_++ < kMostRepeats) || turns_follow;
}

// Returns true if a pod was taken before this pass and no job asks for it any more: another job may
// have counted on its leaving.
bool Takers::StaysSomething() const {
  if (taken_.empty()) return false;
  const std::set<std::string> taken = TakenForOthersThan("");
  return std::any_of(taken_before_.begin(), taken_before_.end(), [&](const std::string& uid) {
    return taken.count(uid) == 0 && capacity_.placed().leaving().count(uid) == 0 &&
           capacity_.placed().Find(uid) != nullptr;
  });
}

std::set<std::string> Takers::TakenForOthersThan(const std::string& job) const {
  std::set<std::string> uids;
  for (const auto& [taker, taken] : taken_) {
    if (taker == job) continue;
    for (const TakenPod& pod : taken) uids.insert(pod.uid);
  }
  return uids;
}

}  // namespace ringmaster::scheduler
