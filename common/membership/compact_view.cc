#include "common/membership/compact_view.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/fields/fields.h"
#include "common/membership/view_json.h"

namespace ringmaster::membership {

using nlohmann::json;

namespace {

// A run stands for many entries in a few bytes, so this limits how many a text may ask for.
constexpr std::size_t kMostEntries = 1u << 18;

constexpr std::array kPodFields = {
    "uid",       "name", "incarnation",      "node",        "zone", "address",
    "heartbeat", "http", "provesHeartbeats", "readsChanges"};
constexpr std::array kRankFields = {"pod", "slot", "incarnation", "tcp", "shm", "joined"};
// The fields that leave out the host of the pod's `address`.
constexpr std::array kPodAddresses = {"heartbeat", "http"};

std::string_view HostOf(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  return colon == std::string_view::npos ? std::string_view() : address.substr(0, colon);
}

// Makes ":9402" of "10.0.0.7:9402" if that is the host. An address that begins with ":" or "="
// itself gets a "=" in front.
std::string Shorten(const std::string& address, std::string_view host) {
  if (!host.empty() && HostOf(address) == host) return address.substr(host.size());
  const bool unclear = address.starts_with(':') || address.starts_with('=');
  return unclear ? "=" + address : address;
}

std::string Lengthen(const std::string& text, std::string_view host) {
  if (text.starts_with('=')) return text.substr(1);
  return text.starts_with(':') ? std::string(host) + text : text;
}

json PodRow(const Pod& pod) {
  const std::string_view host = HostOf(pod.address);
  json row = {pod.uid,
              pod.name,
              pod.incarnation,
              pod.node,
              pod.zone,
              pod.address,
              Shorten(pod.heartbeat, host),
              Shorten(pod.http, host)};
  if (pod.proves_heartbeats || pod.reads_changes) row.push_back(pod.proves_heartbeats);
  if (pod.reads_changes) row.push_back(true);
  return row;
}

json RankRow(const RankEntry& rank, const View& view) {
  json row = {rank.pod, rank.slot, rank.incarnation,
              Shorten(rank.tcp, HostOf(view.pods[rank.pod].address)), rank.shm};
  if (rank.joined) row.push_back(true);
  return row;
}

// Writes a view as runs of entries of the view before it (`base`) and rows of the entries that are
// new. Pods and ranks that stay keep their order, so few runs are enough. Null `base`: only rows.
class Runs {
 public:
  Runs(const View& view, const View* base) : view_(view), base_(base == nullptr ? kNoView : *base) {
    for (std::size_t i = 0; i < base_.pods.size(); ++i) pods_.emplace(base_.pods[i].uid, i);
    for (std::size_t i = 0; i < base_.ranks.size(); ++i) ranks_.emplace(Worker(base_, i), i);
  }

  json Pods() const {
    json rows = json::array();
    const std::size_t size = view_.pods.size();
    for (std::size_t i = 0; i < size;) {
      const auto at = pods_.find(view_.pods[i].uid);
      std::size_t count = 0;
      if (at != pods_.end()) {
        while (i + count < size && IsPod(i + count, at->second + count)) ++count;
      }
      rows.push_back(count == 0 ? PodRow(view_.pods[i])
                                : json{{"from", at->second}, {"count", count}});
      i += std::max<std::size_t>(count, 1);
    }
    return rows;
  }

  json Ranks() const {
    json rows = json::array();
    const std::size_t size = view_.ranks.size();
    for (std::size_t i = 0; i < size;) {
      const auto at = ranks_.find(Worker(view_, i));
      std::size_t count = 0;
      std::int64_t shift = 0;
      if (at != ranks_.end()) {
        shift = Shift(i, at->second);
        while (i + count < size && IsRank(i + count, at->second + count, shift)) ++count;
      }
      rows.push_back(count == 0 ? RankRow(view_.ranks[i], view_)
                                : json{{"from", at->second}, {"count", count}, {"pods", shift}});
      i += std::max<std::size_t>(count, 1);
    }
    return rows;
  }

 private:
  using WorkerId = std::pair<std::string_view, std::uint32_t>;  // pod uid and slot

  static WorkerId Worker(const View& view, std::size_t rank) {
    const RankEntry& entry = view.ranks[rank];
    return {view.pods[entry.pod].uid, entry.slot};
  }
  std::int64_t Shift(std::size_t i, std::size_t at) const {
    return static_cast<std::int64_t>(view_.ranks[i].pod) - base_.ranks[at].pod;
  }
  bool IsPod(std::size_t i, std::size_t at) const {
    return at < base_.pods.size() && base_.pods[at] == view_.pods[i];
  }
  // The same worker on the same pod, whose index differs by `shift`.
  bool IsRank(std::size_t i, std::size_t at, std::int64_t shift) const {
    if (at >= base_.ranks.size() || Shift(i, at) != shift) return false;
    if (Worker(view_, i) != Worker(base_, at)) return false;
    const RankEntry &one = view_.ranks[i], &other = base_.ranks[at];
    return one.incarnation == other.incarnation && one.tcp == other.tcp && one.shm == other.shm &&
           one.joined == other.joined;
  }

  static inline const View kNoView;
  const View& view_;
  const View& base_;
  std::map<std::string_view, std::size_t> pods_;
  std::map<WorkerId, std::size_t> ranks_;
};

}  // namespace

json CompactView(const View& view, const View* base) {
  View head = view;
  head.pods.clear();
  head.ranks.clear();
  json out = ToJson(head);
  const Runs runs(view, base);
  out["pods"] = runs.Pods();
  out["ranks"] = runs.Ranks();
  return out;
}

// ---- Decoding: makes the plain form, whose reader names what is wrong.

namespace {

template <std::size_t N>
json Named(const json& row, const std::array<const char*, N>& names) {
  json object = json::object();
  if (!row.is_array()) return object;
  for (std::size_t i = 0; i < N && i < row.size(); ++i) object[names[i]] = row[i];
  return object;
}

std::string TextOf(const json& object, const char* field) {
  const auto at = object.find(field);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

json PlainPod(const json& row) {
  json pod = Named(row, kPodFields);
  const std::string address = TextOf(pod, "address");
  for (const char* field : kPodAddresses) {
    if (pod.contains(field) && pod[field].is_string()) {
      pod[field] = Lengthen(TextOf(pod, field), HostOf(address));
    }
  }
  return pod;
}

json PlainRank(const json& row, const json& pods) {
  json rank = Named(row, kRankFields);
  const json pod = rank.value("pod", json());
  if (!pods.is_array() || !pod.is_number_unsigned()) return rank;
  if (pod.get<std::size_t>() >= pods.size()) return rank;
  const std::string address = TextOf(pods[pod.get<std::size_t>()], "address");
  if (rank.contains("tcp") && rank["tcp"].is_string()) {
    rank["tcp"] = Lengthen(TextOf(rank, "tcp"), HostOf(address));
  }
  return rank;
}

std::size_t Number(const json& run, const char* field) {
  const auto at = run.find(field);
  return at != run.end() && at->is_number_unsigned() ? at->get<std::size_t>() : kMostEntries;
}

// Appends the run's entries of `base` to `out`. False: `base` has no such run, or there are too
// many entries.
bool CopyRun(const json& run, const json& base, json* out) {
  const std::size_t from = Number(run, "from"), count = Number(run, "count");
  if (from > base.size() || count > base.size() - from) return false;
  if (out->size() + count > kMostEntries) return false;
  const std::int64_t shift = fields::Integer(run, "pods", 0);
  const auto most = static_cast<std::int64_t>(kMostEntries);
  if (shift < -most || shift > most) return false;
  for (std::size_t i = from; i < from + count; ++i) {
    json entry = base[i];
    if (const std::int64_t pod = fields::Integer(entry, "pod", -1); pod >= 0 && pod <= most) {
      if (pod + shift < 0) return false;
      entry["pod"] = static_cast<std::uint64_t>(pod + shift);
    }
    out->push_back(std::move(entry));
  }
  return true;
}

template <typename Plain>
bool Expand(json* list, const json& base, Plain plain) {
  if (!list->is_array()) return true;  // the plain form's reader reports it
  json entries = json::array();
  for (const json& row : *list) {
    if (!row.is_object()) {
      entries.push_back(plain(row));
    } else if (!CopyRun(row, base, &entries)) {
      return false;
    }
  }
  *list = std::move(entries);
  return true;
}

}  // namespace

bool ExpandView(json* view, const json& base) {
  static const json kNone = json::array();
  if (!view->is_object()) return true;
  const auto list = [&](const char* field) -> const json& {
    return base.is_object() && base.contains(field) ? base[field] : kNone;
  };
  json& pods = (*view)["pods"];
  return Expand(&pods, list("pods"), PlainPod) &&
         Expand(&(*view)["ranks"], list("ranks"),
                [&pods](const json& row) { return PlainRank(row, pods); });
}

}  // namespace ringmaster::membership
