#include "common/membership/view_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/fields/parse.h"
#include "common/fields/reader.h"
#include "common/membership/view_json_internal.h"

namespace ringmaster::membership {

using nlohmann::json;

// Views are written at every step of a rebuild, so their JSON is built field by field: an
// initializer list would make and copy each name and value once more.
json ToJson(const Pod& pod) {
  json value;
  value["uid"] = pod.uid;
  value["name"] = pod.name;
  value["incarnation"] = pod.incarnation;
  value["node"] = pod.node;
  value["zone"] = pod.zone;
  value["address"] = pod.address;
  value["heartbeat"] = pod.heartbeat;
  value["http"] = pod.http;
  if (pod.proves_heartbeats) value["provesHeartbeats"] = true;
  if (pod.reads_changes) value["readsChanges"] = true;
  return value;
}

json ToJson(const Worker& worker) {
  json value = {{"slot", worker.slot},   {"incarnation", worker.incarnation},
                {"tcp", worker.tcp},     {"shm", worker.shm},
                {"ready", worker.ready}, {"used", worker.used},
                {"loads", worker.loads}};
  if (worker.holds != 0) value["holds"] = worker.holds;
  return value;
}

json ToJson(const Candidate& candidate) {
  json workers = json::array();
  for (const Worker& worker : candidate.workers) workers.push_back(ToJson(worker));
  return {{"pod", ToJson(candidate.pod)}, {"workers", std::move(workers)}};
}

namespace {

json ToJson(const RankEntry& rank) {
  json value;
  value["pod"] = rank.pod;
  value["slot"] = rank.slot;
  value["incarnation"] = rank.incarnation;
  value["tcp"] = rank.tcp;
  value["shm"] = rank.shm;
  value["joined"] = rank.joined;
  return value;
}

}  // namespace

json ToJson(const View& view) {
  json value;
  value["epoch"] = view.epoch;
  value["parent"] = view.parent;
  value["reason"] = ReasonText(view.reason);
  value["train"] = view.train;
  value["planned"] = view.planned;
  value["coordinator"] = view.coordinator;
  json& pods = value["pods"] = json::array();
  for (const Pod& pod : view.pods) pods.push_back(ToJson(pod));
  json& ranks = value["ranks"] = json::array();
  for (const RankEntry& rank : view.ranks) ranks.push_back(ToJson(rank));
  return value;
}

bool ReasonFromText(std::string_view text, Reason* out) {
  for (int i = 0; i <= static_cast<int>(Reason::kLinkBroken); ++i) {
    if (ReasonText(static_cast<Reason>(i)) != text) continue;
    *out = static_cast<Reason>(i);
    return true;
  }
  return false;
}

// A newer version may send a reason that this one does not know. A reason says why there is a view,
// not what is in it, so such a view is read as one that a plain fault made.
void ReadReason(fields::Reader* reader, const char* field, Reason* out) {
  std::string text;
  reader->String(field, &text, true);
  if (reader->ok() && !ReasonFromText(text, out)) *out = Reason::kWorkerLost;
}

tl::expected<Pod, std::string> ReadPod(const json& value, std::string path) {
  fields::Reader reader(value, std::move(path));
  Pod pod;
  reader.String("uid", &pod.uid, true);
  reader.String("name", &pod.name, true);
  reader.Unsigned("incarnation", &pod.incarnation, true);
  reader.String("node", &pod.node, false);
  reader.String("zone", &pod.zone, false);
  reader.String("address", &pod.address, true);
  reader.String("heartbeat", &pod.heartbeat, false);
  reader.String("http", &pod.http, false);
  reader.Bool("provesHeartbeats", &pod.proves_heartbeats, false);
  reader.Bool("readsChanges", &pod.reads_changes, false);
  if (reader.ok() && pod.uid.empty()) reader.Fail("uid", pod.uid, "a pod uid");
  if (!reader.ok()) return tl::make_unexpected(reader.error());
  return pod;
}

tl::expected<Worker, std::string> ReadWorker(const json& value, std::string path) {
  fields::Reader reader(value, std::move(path));
  Worker worker;
  reader.Unsigned("slot", &worker.slot, true);
  reader.Unsigned("incarnation", &worker.incarnation, true);
  reader.String("tcp", &worker.tcp, false);
  reader.String("shm", &worker.shm, false);
  reader.Bool("ready", &worker.ready, false);
  reader.Bool("used", &worker.used, false);
  reader.Bool("loads", &worker.loads, false);
  reader.Unsigned("holds", &worker.holds, false);
  if (!reader.ok()) return tl::make_unexpected(reader.error());
  return worker;
}

tl::expected<Candidate, std::string> ReadCandidate(const json& value, std::string path) {
  fields::Reader reader(value, std::move(path));
  Candidate candidate;
  if (const json* pod = reader.Need("pod", "an object")) {
    std::string error = fields::MoveInto(ReadPod(*pod, reader.Path("pod")), &candidate.pod);
    if (!error.empty()) reader.Fail(std::move(error));
  }
  reader.Array("workers", true, [&](const json& element, std::string at) {
    return fields::MoveInto(ReadWorker(element, std::move(at)), &candidate.workers.emplace_back());
  });
  if (!reader.ok()) return tl::make_unexpected(reader.error());
  return candidate;
}

namespace {

tl::expected<RankEntry, std::string> ReadRank(const json& value, std::string path,
                                              std::size_t pods) {
  fields::Reader reader(value, std::move(path));
  RankEntry rank;
  reader.Unsigned("pod", &rank.pod, true);
  reader.Unsigned("slot", &rank.slot, true);
  reader.Unsigned("incarnation", &rank.incarnation, true);
  reader.String("tcp", &rank.tcp, false);
  reader.String("shm", &rank.shm, false);
  reader.Bool("joined", &rank.joined, false);
  if (reader.ok() && rank.pod >= pods) reader.Fail("pod", rank.pod, "an index into pods");
  if (!reader.ok()) return tl::make_unexpected(reader.error());
  return rank;
}

// Refuses a view that lacks what every user of a view relies on.
void CheckView(const View& view, fields::Reader* reader) {
  std::set<std::string_view> uids;
  for (const Pod& pod : view.pods) {
    if (!uids.insert(pod.uid).second) reader->Fail("pods", pod.uid, "listed once");
  }
  if (view.epoch == 0) reader->Fail("epoch", view.epoch, "an epoch above 0");
  if (view.parent >= view.epoch) reader->Fail("parent", view.parent, "below the epoch");
  if (view.pods.empty()) reader->Fail("pods", json::array(), "a list of at least one pod");
  if (view.FindPod(view.coordinator) < 0) {
    reader->Fail("coordinator", view.coordinator, "the uid of one of the pods");
  }
}

}  // namespace

tl::expected<View, std::string> ReadView(const json& value, std::string path) {
  fields::Reader reader(value, std::move(path));
  View view;
  reader.Unsigned("epoch", &view.epoch, true);
  reader.Unsigned("parent", &view.parent, true);
  ReadReason(&reader, "reason", &view.reason);
  reader.Bool("train", &view.train, true);
  reader.Bool("planned", &view.planned, false);
  reader.String("coordinator", &view.coordinator, true);
  reader.Array("pods", true, [&](const json& element, std::string at) {
    return fields::MoveInto(ReadPod(element, std::move(at)), &view.pods.emplace_back());
  });
  reader.Array("ranks", true, [&](const json& element, std::string at) {
    return fields::MoveInto(ReadRank(element, std::move(at), view.pods.size()),
                            &view.ranks.emplace_back());
  });
  if (reader.ok()) CheckView(view, &reader);
  if (!reader.ok()) return tl::make_unexpected(reader.error());
  return view;
}

tl::expected<View, std::string> ViewFromJson(const json& value) { return ReadView(value, "view"); }
tl::expected<Candidate, std::string> CandidateFromJson(const json& value) {
  return ReadCandidate(value, "candidate");
}

std::string EncodeView(const View& view) { return ToJson(view).dump(); }
std::string EncodeCandidate(const Candidate& candidate) { return ToJson(candidate).dump(); }

tl::expected<View, std::string> DecodeView(std::string_view text) {
  return fields::Parse(text, "view").and_then([](const json& value) {
    return ViewFromJson(value);
  });
}
tl::expected<Candidate, std::string> DecodeCandidate(std::string_view text) {
  return fields::Parse(text, "candidate").and_then([](const json& value) {
    return CandidateFromJson(value);
  });
}

}  // namespace ringmaster::membership
