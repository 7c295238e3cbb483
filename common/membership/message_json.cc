#include "common/membership/message_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/parse.h"
#include "common/fields/reader.h"
#include "common/membership/view_json.h"
#include "common/membership/view_json_internal.h"

namespace ringmaster::membership {

using nlohmann::json;

json BallotJson(const Ballot& ballot) { return {{"round", ballot.round}, {"pod", ballot.pod}}; }

void ReadBallot(fields::Reader* reader, const char* field, Ballot* out) {
  const json* value = reader->Find(field);
  if (!value) return;
  fields::Reader inner(*value, reader->Path(field));
  inner.Unsigned("round", &out->round, true);
  inner.String("pod", &out->pod, true);
  if (!inner.ok()) reader->Fail(inner.error());
}

void ReadViewPtr(fields::Reader* reader, const char* field, ViewPtr* out) {
  const json* value = reader->Find(field);
  if (!value) return;
  tl::expected<View, std::string> view = ReadView(*value, reader->Path(field));
  if (!view) return reader->Fail(view.error());
  *out = std::make_shared<const View>(std::move(*view));
}

namespace {

bool KindFromText(std::string_view text, MessageKind* out) {
  for (int i = 0; i <= static_cast<int>(MessageKind::kFinishing); ++i) {
    if (MessageKindText(static_cast<MessageKind>(i)) != text) continue;
    *out = static_cast<MessageKind>(i);
    return true;
  }
  return false;
}

// Refuses a message without a field that its kind needs, so that the code behind can rely on it.
void CheckMessage(const Message& message, bool has_value, fields::Reader* reader) {
  bool voting = message.kind == MessageKind::kPrepare || message.kind == MessageKind::kPromise ||
                message.kind == MessageKind::kPropose || message.kind == MessageKind::kAccepted ||
                message.kind == MessageKind::kRefused;
  if (voting && message.ballot.none()) reader->Need("ballot", "an object {round, pod}");
  bool carries = message.kind == MessageKind::kPropose || message.kind == MessageKind::kAccepted ||
                 message.kind == MessageKind::kDecided;
  if (carries && !has_value) reader->Need("value", "a view");
  if (!message.accepted.none() && !has_value) reader->Need("value", "the accepted view");
  if (message.kind == MessageKind::kJoin && message.candidate.pod.uid.empty()) {
    reader->Need("candidate", "an object {pod, workers}");
  }
}

}  // namespace

std::string EncodeMessage(const Message& message, const std::string& change) {
  json out = {{"kind", MessageKindText(message.kind)},
              {"from", message.from},
              {"incarnation", message.incarnation},
              {"view", message.view}};
  if (!message.ballot.none()) out["ballot"] = BallotJson(message.ballot);
  if (!message.promised.none()) out["promised"] = BallotJson(message.promised);
  if (!message.accepted.none()) out["accepted"] = BallotJson(message.accepted);
  if (!change.empty()) {
    out["change"] = change;
  } else if (message.value) {
    out["value"] = ToJson(*message.value);
  }
  if (message.base) out["base"] = ToJson(*message.base);
  if (message.number != 0) out["number"] = message.number;
  if (!message.pods.empty()) out["pods"] = message.pods;
  if (!message.text.empty()) out["text"] = message.text;
  for (const Worker& worker : message.workers) out["workers"].push_back(ToJson(worker));
  if (message.kind == MessageKind::kJoin) {
    out["reason"] = ReasonText(message.reason);
    out["candidate"] = ToJson(message.candidate);
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

tl::expected<Message, std::string> DecodeMessage(std::string_view text, std::string* change) {
  tl::expected<json, std::string> parsed = fields::Parse(text, "message");
  if (!parsed) return tl::make_unexpected(parsed.error());
  fields::Reader reader(*parsed, "message");
  Message message;
  std::string kind;
  reader.String("kind", &kind, true);
  if (reader.ok() && !KindFromText(kind, &message.kind)) {
    reader.Fail("kind", kind, "a known kind of message (prepare, promise, propose, ...)");
  }
  reader.String("from", &message.from, true);
  reader.Unsigned("incarnation", &message.incarnation, true);
  reader.Unsigned("view", &message.view, true);
  ReadBallot(&reader, "ballot", &message.ballot);
  ReadBallot(&reader, "promised", &message.promised);
  ReadBallot(&reader, "accepted", &message.accepted);
  ReadViewPtr(&reader, "value", &message.value);
  ReadViewPtr(&reader, "base", &message.base);
  reader.Unsigned("number", &message.number, false);
  reader.String("text", &message.text, false);
  reader.Array("pods", false, [&](const json& element, std::string at) -> std::string {
    if (!element.is_string()) return at + ": " + element.dump() + " is not a string";
    message.pods.push_back(element.get<std::string>());
    return "";
  });
  reader.Array("workers", false, [&](const json& element, std::string at) {
    return fields::MoveInto(ReadWorker(element, std::move(at)), &message.workers.emplace_back());
  });
  if (reader.Find("reason")) ReadReason(&reader, "reason", &message.reason);
  if (const json* candidate = reader.Find("candidate")) {
    std::string error =
        fields::MoveInto(ReadCandidate(*candidate, reader.Path("candidate")), &message.candidate);
    if (!error.empty()) reader.Fail(std::move(error));
  }
  if (change != nullptr && !message.value) reader.String("change", change, false);
  const bool has_value = message.value != nullptr || (change != nullptr && !change->empty());
  if (reader.ok()) CheckMessage(message, has_value, &reader);
  if (!reader.ok()) return tl::make_unexpected(reader.error());
  return message;
}

std::string EncodeReport(const RecoveryReport& report) {
  json out = {{"lineage", report.lineage},
              {"resigned", report.resigned},
              {"ran", report.ran},
              {"candidate", ToJson(report.candidate)}};
  if (report.view) out["view"] = ToJson(*report.view);
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

tl::expected<RecoveryReport, std::string> DecodeReport(std::string_view text) {
  tl::expected<json, std::string> parsed = fields::Parse(text, "report");
  if (!parsed) return tl::make_unexpected(parsed.error());
  fields::Reader reader(*parsed, "report");
  RecoveryReport report;
  reader.Unsigned("lineage", &report.lineage, true);
  reader.Bool("resigned", &report.resigned, true);
  reader.Bool("ran", &report.ran, true);
  ReadViewPtr(&reader, "view", &report.view);
  if (const json* candidate = reader.Need("candidate", "an object {pod, workers}")) {
    std::string error =
        fields::MoveInto(ReadCandidate(*candidate, reader.Path("candidate")), &report.candidate);
    if (!error.empty()) reader.Fail(std::move(error));
  }
  if (reader.ok() && report.lineage == 0) reader.Fail("lineage", report.lineage, "above 0");
  if (!reader.ok()) return tl::make_unexpected(reader.error());
  return report;
}

}  // namespace ringmaster::membership
