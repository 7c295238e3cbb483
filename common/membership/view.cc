#include "common/membership/view.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace ringmaster::membership {

bool NaturalLess(std::string_view a, std::string_view b) {
  auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      auto run = [&](std::string_view s, std::size_t* at) {
        std::size_t begin = *at;
        while (*at < s.size() && digit(s[*at])) ++*at;
        while (begin + 1 < *at && s[begin] == '0') ++begin;
        return s.substr(begin, *at - begin);
      };
      std::string_view x = run(a, &i), y = run(b, &j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

std::string EpochText(Epoch epoch) {
  return std::to_string(EpochLineage(epoch)) + "." + std::to_string(EpochNumber(epoch));
}

std::string_view ReasonText(Reason reason) {
  switch (reason) {
    case Reason::kBootstrap:
      return "Bootstrap";
    case Reason::kWorkerLost:
      return "WorkerLost";
    case Reason::kPodLost:
      return "PodLost";
    case Reason::kPodDrained:
      return "PodDrained";
    case Reason::kWorkerJoined:
      return "WorkerJoined";
    case Reason::kPodJoined:
      return "PodJoined";
    case Reason::kRejoin:
      return "Rejoin";
    case Reason::kQuorumRecovered:
      return "QuorumRecovered";
    case Reason::kLinkBroken:
      return "LinkBroken";
  }
  return "Unknown";
}

int View::FindPod(std::string_view uid) const {
  for (std::size_t i = 0; i < pods.size(); ++i) {
    if (pods[i].uid == uid) return static_cast<int>(i);
  }
  return -1;
}

int View::FindMember(std::string_view uid, std::uint64_t incarnation) const {
  int i = FindPod(uid);
  return i >= 0 && pods[i].incarnation == incarnation ? i : -1;
}

int View::FindRank(std::string_view uid, std::uint32_t slot, std::uint64_t incarnation) const {
  int pod = FindPod(uid);
  for (std::size_t i = 0; pod >= 0 && i < ranks.size(); ++i) {
    const RankEntry& rank = ranks[i];
    if (rank.pod == static_cast<std::uint32_t>(pod) && rank.slot == slot &&
        rank.incarnation == incarnation) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

bool TopologyLess(const Pod& a, const Pod& b) {
  for (const auto field : {&Pod::zone, &Pod::node, &Pod::name}) {
    if (NaturalLess(a.*field, b.*field)) return true;
    if (NaturalLess(b.*field, a.*field)) return false;
  }
  return a.uid < b.uid;
}

View BootstrapView(std::vector<Candidate> candidates, std::uint32_t min_pods,
                   const PodOrder& order) {
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return order(a.pod, b.pod); });
  View view;
  view.epoch = MakeEpoch(1, 1);
  view.train = candidates.size() >= min_pods;
  for (Candidate& candidate : candidates) {
    auto index = static_cast<std::uint32_t>(view.pods.size());
    std::sort(candidate.workers.begin(), candidate.workers.end(),
              [](const Worker& a, const Worker& b) { return a.slot < b.slot; });
    for (Worker& worker : candidate.workers) {
      view.ranks.push_back({index, worker.slot, worker.incarnation, std::move(worker.tcp),
                            std::move(worker.shm), false});
    }
    view.pods.push_back(std::move(candidate.pod));
  }
  if (!view.pods.empty()) view.coordinator = view.pods.front().uid;
  return view;
}

std::string Describe(const View& view) {
  int coordinator = view.FindPod(view.coordinator);
  std::string text = EpochText(view.epoch) + " " + std::string(ReasonText(view.reason)) + ": " +
                     std::to_string(view.pods.size()) + " pods, " +
                     std::to_string(view.ranks.size()) + " ranks, coordinator " +
                     (coordinator < 0 ? view.coordinator : view.pods[coordinator].name);
  if (!view.train) text += ", held";
  return text;
}

}  // namespace ringmaster::membership
