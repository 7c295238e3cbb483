#include "common/worker_link/worker_frames.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/worker_link/frame.h"

namespace ringmaster::worker_link {

using nlohmann::json;

namespace {

int Int(const json& frame, const char* name, int otherwise) {
  return static_cast<int>(fields::Integer(frame, name, otherwise));
}

void Add(const WorkerPlace& place, json* frame) {
  frame->update({{"rank", place.rank},
                 {"size", place.size},
                 {"localRank", place.local_rank},
                 {"localSize", place.local_size}});
}

}  // namespace

// ---- From a worker

json ToFrame(const WorkerHello& hello) {
  json frame = {{"t", "hello"},
                {"version", kLinkVersion},
                {"role", "worker"},
                {"slot", hello.slot},
                {"incarnation", hello.incarnation},
                {"pid", hello.pid},
                {"standby", hello.standby},
                {"tcp", hello.tcp},
                {"shm", hello.shm},
                {"epoch", hello.epoch},
                {"given", hello.given}};
  if (hello.library) frame["library"] = *hello.library;
  if (hello.keeps_timeline) frame["timeline"] = true;
  return frame;
}

WorkerHello ReadWorkerHello(const json& frame) {
  WorkerHello hello;
  if (fields::Member(frame, "library").is_string()) hello.library = fields::Text(frame, "library");
  hello.standby = fields::Flag(frame, "standby");
  hello.slot = hello.standby ? -1 : Int(frame, "slot", -1);
  hello.incarnation = fields::Unsigned(frame, "incarnation");
  hello.pid = fields::Integer(frame, "pid");
  hello.tcp = fields::Text(frame, "tcp");
  hello.shm = fields::Text(frame, "shm");
  hello.epoch = fields::Unsigned(frame, "epoch");
  hello.given = fields::Unsigned(frame, "given");
  hello.keeps_timeline = fields::Flag(frame, "timeline");
  return hello;
}

json PingFields(const PingReport& report) {
  json fields = {{"epoch", report.epoch},
                 {"step", report.step},
                 {"ran", report.ran},
                 {"busy", report.busy},
                 {"times", report.times ? job::ToJson(*report.times) : json::object()},
                 {"values", report.values}};
  if (report.holds) fields["holds"] = *report.holds;
  if (report.gpu) fields["gpu"] = job::ToJson(*report.gpu);
  if (!report.stalls.empty()) fields["stalls"] = job::ToJson(report.stalls);
  return fields;
}

json PingFrame(uint64_t number, json fields) {
  fields["t"] = "ping";
  fields["n"] = number;
  return fields;
}

json ToFrame(const ViewTrouble& trouble) {
  return {{"t", trouble.broken ? "broken" : "suspect"},
          {"epoch", trouble.epoch},
          {"rank", trouble.rank},
          {"reason", trouble.reason}};
}

ViewTrouble ReadViewTrouble(const json& frame) {
  return {.epoch = fields::Unsigned(frame, "epoch"),
          .rank = Int(frame, "rank", -1),
          .reason = fields::Text(frame, "reason"),
          .broken = fields::Text(frame, "t") == "broken"};
}

json RebuiltFrame(uint64_t epoch, const job::PhaseSeconds& seconds, uint64_t step,
                  uint64_t resumed) {
  return {{"t", "rebuilt"},
          {"epoch", epoch},
          {"seconds", seconds},
          {"step", step},
          {"resumed", resumed}};
}

job::Rebuild ReadRebuilt(const json& frame) {
  return {.epoch = fields::Unsigned(frame, "epoch"),
          .seconds = job::PhaseSecondsFromJson(fields::Member(frame, "seconds")),
          .steps_resumed = fields::Unsigned(frame, "resumed")};
}

json EnterFrame(bool takes_state) {
  json frame = {{"t", "enter"}};
  if (!takes_state) frame["state"] = false;
  return frame;
}

bool TakesState(const json& enter) { return fields::Flag(enter, "state", true); }

json StoppedFrame(uint64_t epoch, std::optional<uint64_t> holds) {
  json frame = {{"t", "stopped"}, {"epoch", epoch}};
  if (holds) frame["holds"] = *holds;
  return frame;
}

json InstalledFrame(uint64_t epoch, std::optional<double> connect_seconds) {
  const json connect = connect_seconds ? json(*connect_seconds) : json(0);
  return {{"t", "installed"}, {"epoch", epoch}, {"seconds", {{"connect", connect}}}};
}

json BoundaryFrame(uint64_t epoch, uint64_t step) {
  return {{"t", "boundary"}, {"epoch", epoch}, {"step", step}};
}

json RestingFrame(uint64_t epoch) { return {{"t", "resting"}, {"epoch", epoch}}; }

json WokenFrame() { return {{"t", "woken"}}; }

json FinishedFrame(uint64_t epoch) { return {{"t", "finished"}, {"epoch", epoch}}; }

json TimelinePieceFrame(uint64_t request, const std::string& text, bool last) {
  return {{"t", "timeline"}, {"request", request}, {"text", text}, {"last", last}};
}

json ByeFrame(const std::string& reason) { return {{"t", "bye"}, {"reason", reason}}; }

// ---- To a worker

json ToFrame(const Welcome& welcome) {
  json frame = {{"t", "welcome"},
                {"version", kLinkVersion},
                {"job", welcome.job},
                {"pod", welcome.pod},
                {"slot", welcome.slot},
                {"incarnation", welcome.incarnation},
                {"state", welcome.state},
                {"epoch", welcome.epoch},
                {"rests", welcome.rests},
                {"pingMs", welcome.ping_ms},
                {"fenceMs", welcome.fence_ms}};
  Add(welcome.place, &frame);
  if (!welcome.ring_key.empty()) frame["ringKey"] = welcome.ring_key;
  return frame;
}

Welcome ReadWelcome(const json& frame) {
  Welcome welcome;
  welcome.job = fields::Text(frame, "job");
  welcome.pod = fields::Text(frame, "pod");
  welcome.slot = Int(frame, "slot", 0);
  welcome.incarnation = fields::Unsigned(frame, "incarnation");
  welcome.state = fields::Text(frame, "state");
  welcome.epoch = fields::Unsigned(frame, "epoch");
  welcome.place = {.rank = Int(frame, "rank", 0),
                   .size = Int(frame, "size", 1),
                   .local_rank = Int(frame, "localRank", 0),
                   .local_size = Int(frame, "localSize", 1)};
  welcome.rests = fields::Flag(frame, "rests");
  welcome.ping_ms = fields::Integer(frame, "pingMs", welcome.ping_ms);
  welcome.fence_ms = fields::Integer(frame, "fenceMs", welcome.fence_ms);
  welcome.ring_key = fields::Text(frame, "ringKey");
  return welcome;
}

json PromotedFrame(int slot, uint64_t incarnation, const WorkerPlace& place) {
  json frame = {{"t", "promoted"}, {"slot", slot}, {"incarnation", incarnation}};
  Add(place, &frame);
  return frame;
}

json StopFrame(uint64_t epoch) { return {{"t", "stop"}, {"epoch", epoch}}; }

json ArmFrame(uint64_t epoch) { return {{"t", "arm"}, {"epoch", epoch}}; }

json LeftFrame(uint64_t epoch, const std::string& reason) {
  return {{"t", "left"}, {"epoch", epoch}, {"reason", reason}};
}

json ErrorFrame(const std::string& message) { return {{"t", "error"}, {"message", message}}; }

json PongFrame(int64_t number) { return {{"t", "pong"}, {"n", number}}; }

}  // namespace ringmaster::worker_link
