#include "operator/scheduler/admission.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ringmaster::scheduler {
namespace {

bool Contains(const std::vector<std::string>& paths, const std::string& path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

bool AskForTheSame(const AdmissionRequest& a, const AdmissionRequest& b) {
  const auto same = [](const auto& pod, const auto& other) {
    return PathOf(*pod) == PathOf(*other);
  };
  return a.priority == b.priority && a.since == b.since && a.sizes == b.sizes &&
         std::equal(a.pods.begin(), a.pods.end(), b.pods.begin(), b.pods.end(), same);
}

}  // namespace

GangFit Admission::Ask(AdmissionRequest request, const std::vector<std::string>& started) {
  const std::string job = request.job;
  Waiting& waiting = waiting_[job];
  // A pod that was made and is gone again has taken its place along.
  const auto begin = waiting.request.pods.begin();
  const bool holds = std::all_of(begin, begin + waiting.answer.fit,
                                 [this](const auto& pod) { return capacity_.Holds(PathOf(*pod)); });
  if (!holds || !AskForTheSame(waiting.request, request)) {
    Drop(job, started);
    waiting = {.request = std::move(request)};
  }
  if (waiting.Satisfied()) return waiting.answer;
  if (!OthersWait(job)) {
    const bool grown = capacity_.HasGrown();
    capacity_.PlaceFloating();
    Grow(&waiting, /*to_least=*/false);
    if (!grown) capacity_.TakeGrown();  // what was tried and given back again is no news
  } else if (!waiting.decided) {
    asked_ = true;
    waiting.answer.why = "it stands in line";
  }
  return waiting.answer;
}

void Admission::Withdraw(const std::string& job, const std::vector<std::string>& started) {
  waiting_.erase(job);
  Drop(job, started);
}

// Also what was granted and isn't asked for any more.
void Admission::Drop(const std::string& job, const std::vector<std::string>& keep) {
  const auto granted = granted_.find(job);
  if (granted == granted_.end()) return;
  std::erase_if(granted->second, [&](const std::string& path) {
    if (!capacity_.Holds(path)) return true;
    if (Contains(keep, path)) return false;
    capacity_.Release(path);
    return true;
  });
  if (granted->second.empty()) granted_.erase(granted);
}

bool Admission::OthersWait(const std::string& job) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& other) {
    return other.first != job && !other.second.Satisfied();
  });
}

bool Admission::IsPassDue() const { return asked_ || (capacity_.HasGrown() && OthersWait("")); }

std::vector<Admission::Waiting*> Admission::InOrder() {
  std::vector<Waiting*> order;
  for (auto& [job, waiting] : waiting_) {
    if (!waiting.Satisfied()) order.push_back(&waiting);
  }
  std::sort(order.begin(), order.end(), [](const Waiting* a, const Waiting* b) {
    const auto rank = [](const AdmissionRequest& r) {
      return std::tuple(-r.priority, r.since, r.job);
    };
    return rank(a->request) < rank(b->request);
  });
  return order;
}

std::vector<std::string> Admission::Pass(Moment now) {
  asked_ = false;
  capacity_.TakeGrown();
  capacity_.PlaceFloating();
  std::vector<std::string> changed, kept;
  const std::vector<Waiting*> order = InOrder();
  std::map<const Waiting*, std::pair<bool, int>> before;
  for (Waiting* waiting : order) {
    before[waiting] = {waiting->decided, waiting->answer.fit};
    Grow(waiting, /*to_least=*/true);
    const bool stuck = waiting->answer.fit == 0;
    if (stuck && kept.empty() && now - waiting->request.since >= kPatience) {
      kept = HoldWhatFits(*waiting);
    }
  }
  for (Waiting* waiting : order) {
    if (waiting->answer.fit > 0) Grow(waiting, /*to_least=*/false);
  }
  for (const std::string& path : kept) capacity_.Release(path);
  capacity_.TakeGrown();  // what was tried and given back again is no news
  for (const Waiting* waiting : order) {
    if (before[waiting] != std::pair(waiting->decided, waiting->answer.fit)) {
      changed.push_back(waiting->request.job);
    }
  }
  return changed;
}

// Holds places for more of its pods: up to the smallest size that is of use, or to the largest.
void Admission::Grow(Waiting* waiting, bool to_least) {
  const AdmissionRequest& request = waiting->request;
  GangFit& answer = waiting->answer;
  waiting->decided = true;
  answer.why.clear();
  if (request.sizes.empty() || answer.fit >= request.sizes.back()) return;
  const int target = to_least ? std::max(answer.fit, request.sizes.front()) : request.sizes.back();
  int placed = answer.fit;
  for (; placed < target; ++placed) {
    const Json& pod = *request.pods[placed];
    const auto node = capacity_.Place(pod);
    if (!node) {
      answer.why = node.error();
      break;
    }
    capacity_.Hold(pod, *node);
  }
  int of_use = answer.fit;
  for (const int size : request.sizes) {
    if (size <= placed) of_use = std::max(of_use, size);
  }
  for (int i = of_use; i < placed; ++i) capacity_.Release(PathOf(*request.pods[i]));
  for (int i = answer.fit; i < of_use; ++i) {
    granted_[request.job].push_back(PathOf(*request.pods[i]));
  }
  answer.fit = of_use;
  answer.tried = placed;
}

// As much of what it needs as is free: nobody behind it in line shall have that.
std::vector<std::string> Admission::HoldWhatFits(const Waiting& waiting) {
  std::vector<std::string> held;
  for (int i = 0; i < waiting.request.sizes.front(); ++i) {
    const Json& pod = *waiting.request.pods[i];
    const auto node = capacity_.Place(pod);
    if (!node) break;
    capacity_.Hold(pod, *node);
    held.push_back(PathOf(pod));
  }
  return held;
}

}  // namespace ringmaster::scheduler
