#include "common/job/stall.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/plain_text/plain_text.h"

namespace ringmaster::job {
namespace {

constexpr std::size_t kMostRanks = 64;  // that one stall names
constexpr std::size_t kLongestName = 200;
// A year: what is counted with a stranger's number must not overflow.
constexpr std::int64_t kLongestWaitMs = 365LL * 24 * 3600 * 1000;

std::string Short(std::string text) { return plain_text::Cut(std::move(text), kLongestName); }

std::vector<int> Ranks(const nlohmann::json& list) {
  std::vector<int> ranks;
  if (!list.is_array()) return ranks;
  for (const nlohmann::json& rank : list) {
    if (!rank.is_number_integer() || ranks.size() >= kMostRanks) continue;
    const auto number = rank.get<std::int64_t>();
    if (std::in_range<int>(number)) ranks.push_back(static_cast<int>(number));
  }
  return ranks;
}

std::vector<int> FirstOf(std::vector<int> ranks) {
  if (ranks.size() > kMostRanks) ranks.resize(kMostRanks);
  return ranks;
}

std::string List(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

// "rank 0", "ranks 0, 2", "40 ranks (0, 1, 2, 3, ...)". A sender of an earlier version names no
// ranks, which gives "2 ranks".
std::string WhoAsked(const Stall& stall) {
  constexpr std::size_t kMostListed = 8;
  const std::string plural = stall.asked == 1 ? "rank" : "ranks";
  const std::string number = std::to_string(stall.asked) + " " + plural;
  if (stall.waiting.empty()) return number;
  const bool all = stall.waiting.size() == static_cast<std::size_t>(stall.asked);
  if (all && stall.waiting.size() <= kMostListed) return plural + " " + List(stall.waiting);
  std::vector<int> first = stall.waiting;
  first.resize(std::min<std::size_t>(first.size(), 4));
  return number + " (" + List(first) + ", ...)";
}

// What follows the number of the missing rank with index `i`: " (digits-worker-1, in shutdown())".
std::string RemarkOn(const Stall& stall, std::size_t i) {
  std::string remark = i < stall.pods.size() ? stall.pods[i] : "";
  const auto& shut = stall.in_shutdown;
  if (std::find(shut.begin(), shut.end(), stall.missing[i]) != shut.end())
    remark += remark.empty() ? "in shutdown()" : ", in shutdown()";
  return remark.empty() ? "" : " (" + remark + ")";
}

}  // namespace

nlohmann::json ToJson(const std::vector<Stall>& stalls) {
  nlohmann::json list = nlohmann::json::array();
  for (const Stall& stall : stalls) {
    if (list.size() == kMostStalls) break;
    list.push_back({{"tensor", Short(stall.tensor)},
                    {"tensors", stall.tensors},
                    {"processSet", stall.process_set},
                    {"asked", stall.asked},
                    {"waiting", FirstOf(stall.waiting)},
                    {"missing", stall.missing},
                    {"inShutdown", FirstOf(stall.in_shutdown)},
                    {"pods", stall.pods},
                    {"waitedMs", stall.waited_ms}});
  }
  return list;
}

std::vector<Stall> StallsFromJson(const nlohmann::json& json) {
  std::vector<Stall> stalls;
  if (!json.is_array()) return stalls;
  for (const nlohmann::json& entry : json) {
    if (stalls.size() == kMostStalls) break;
    Stall stall{.tensor = Short(fields::Text(entry, "tensor")),
                .tensors = static_cast<int>(fields::Integer(entry, "tensors", 1)),
                .process_set = static_cast<int>(fields::Integer(entry, "processSet")),
                .asked = static_cast<int>(fields::Integer(entry, "asked")),
                .waiting = Ranks(fields::Member(entry, "waiting")),
                .missing = Ranks(fields::Member(entry, "missing")),
                .in_shutdown = Ranks(fields::Member(entry, "inShutdown")),
                .pods = fields::Texts(entry, "pods"),
                .waited_ms = std::clamp<std::int64_t>(fields::Integer(entry, "waitedMs"), 0,
                                                      kLongestWaitMs)};
    if (stall.pods.size() > kMostRanks) stall.pods.resize(kMostRanks);
    for (std::string& pod : stall.pods) pod = Short(std::move(pod));
    if (!stall.missing.empty()) stalls.push_back(std::move(stall));
  }
  return stalls;
}

std::string Describe(const Stall& stall) {
  std::string text = "'" + stall.tensor + "'";
  if (stall.tensors > 1) text += " and " + std::to_string(stall.tensors - 1) + " more";
  if (stall.process_set != 0) text += " of process set " + std::to_string(stall.process_set);
  text += ": asked for by " + WhoAsked(stall);
  for (std::size_t i = 0; i < stall.missing.size(); ++i) {
    text += (i == 0 ? ", not by rank " : ", ") + std::to_string(stall.missing[i]);
    text += RemarkOn(stall, i);
  }
  return text;
}

}  // namespace ringmaster::job
