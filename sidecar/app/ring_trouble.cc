#include "sidecar/app/ring_trouble.h"

#include <algorithm>
#include <chrono>

namespace ringmaster::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Longer than a silent pod takes to be suspected: a death that is the cause is seen as death.
constexpr milliseconds kPatience{1500};
constexpr seconds kLongestPatience{30};
constexpr int kQuickTries = 3;  // before the patience doubles with each view that does nothing
constexpr int kTooManyBreaks = 3;
constexpr minutes kRemembered{10};

}  // namespace

void RingTrouble::Begin(Epoch epoch, SteadyTime now) {
  if (epoch_ != epoch) Clear();
  epoch_ = epoch;
  if (!since_) since_ = now;
}

void RingTrouble::Suspect(Epoch epoch, int rank, SteadyTime now) {
  Begin(epoch, now);
  suspected_.insert(rank);
}

void RingTrouble::Broke(Epoch epoch, int rank, SteadyTime now) {
  Begin(epoch, now);
  if (rank >= 0) broken_.insert(rank);
}

// A view that runs ends a bad spell: when it breaks in its turn, that is a first time.
void RingTrouble::Ran(Epoch epoch) {
  ran_ = std::max(ran_, epoch);
  if (ran_ >= entered_) fruitless_ = 0;
}

void RingTrouble::EnterView(const membership::View& view) {
  Clear();
  entered_ = view.epoch;
  if (view.reason != membership::Reason::kLinkBroken) return;
  fruitless_ = ran_ >= view.parent ? 0 : fruitless_ + 1;
}

void RingTrouble::Clear() {
  since_.reset();
  suspected_.clear();
  broken_.clear();
}

bool RingTrouble::Accuse(const membership::View& view, int pod_index) const {
  if (epoch_ != view.epoch) return false;
  return std::any_of(suspected_.begin(), suspected_.end(),
                     [&](int rank) { return static_cast<int>(view.ranks[rank].pod) == pod_index; });
}

std::vector<membership::Pod> RingTrouble::OtherEnds(const membership::View& view,
                                                    const std::string& own) const {
  std::set<std::uint32_t> indices;
  for (const auto* ranks : {&suspected_, &broken_}) {
    for (const int rank : *ranks) indices.insert(view.ranks[rank].pod);
  }
  std::vector<membership::Pod> pods;
  for (const std::uint32_t index : indices) {
    if (view.pods[index].uid != own) pods.push_back(view.pods[index]);
  }
  return pods;
}

int RingTrouble::Breaks(const std::string& uid, SteadyTime now) const {
  const auto known = history_.find(uid);
  if (known == history_.end()) return 0;
  return static_cast<int>(std::count_if(known->second.breaks.begin(), known->second.breaks.end(),
                                        [&](SteadyTime at) { return now - at < kRemembered; }));
}

SteadyTime::duration RingTrouble::Patience(bool accuses) const {
  const int doublings = std::clamp(fruitless_ - kQuickTries, 0, 5);
  const auto patience =
      std::min<SteadyTime::duration>(kPatience * (1 << doublings), kLongestPatience);
  // An accusation goes first, so that it is known when the new view is proposed.
  return accuses ? patience * 2 / 3 : patience;
}

std::optional<RingTrouble::Lasting> RingTrouble::TakeLasting(const membership::View& view,
                                                             const std::string& own,
                                                             SteadyTime now) {
  if (epoch_ != view.epoch || !since_) return std::nullopt;
  Lasting lasting;
  lasting.pods = OtherEnds(view, own);
  for (const membership::Pod& pod : lasting.pods) {
    if (Breaks(pod.uid, now) + 1 >= kTooManyBreaks) lasting.accused.push_back(pod.uid);
  }
  if (now - *since_ < Patience(!lasting.accused.empty())) return std::nullopt;
  Clear();
  for (const membership::Pod& pod : lasting.pods) {
    History& history = history_[pod.uid];
    history.name = pod.name;
    history.breaks.push_back(now);
    if (history.breaks.size() > kTooManyBreaks * 10) history.breaks.pop_front();
  }
  std::erase_if(history_, [&](const auto& link) { return Breaks(link.first, now) == 0; });
  return lasting;
}

std::vector<BrokenLink> RingTrouble::Links(const membership::View* view, std::uint32_t min_pods,
                                           SteadyTime now) const {
  std::vector<BrokenLink> links;
  for (const auto& [uid, history] : history_) {
    const int breaks = Breaks(uid, now);
    if (breaks == 0) continue;
    const bool together = view != nullptr && view->FindPod(uid) >= 0;
    const bool kept = together && breaks >= kTooManyBreaks && view->pods.size() <= min_pods;
    links.push_back({history.name, breaks, kept});
  }
  return links;
}

}  // namespace ringmaster::app
