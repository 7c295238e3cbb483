// Messages of earlier versions, each a file of tests/compat/VERSION: what operators, sidecars and
// command lines of that version have said to each other and stored. Today's code reads them, and
// what it writes of them has every field that they had.
//
// At a release the messages of its version are added: RINGMASTER_RECORD_WIRE=DIR, and this test,
// writes them into DIR. Files that are there are never changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "collectives/elastic/timeline_request.h"
#include "common/membership/message_json.h"
#include "common/membership/state_json.h"
#include "common/membership/view_json.h"
#include "operator.pb.h"
#include "operator/inspection/job_trace.h"
#include "operator/inspection/pod_trace.h"
#include "operator/inspection/sidecar_status.h"
#include "rendezvous.pb.h"
#include "sidecar/app/worker_timelines.h"

namespace ringmaster {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Empty: everything that `was` says is in `is`, too; else where it is not.
std::string Lacks(const json& was, const json& is, const std::string& at = "") {
  if (was.is_object()) {
    for (const auto& [key, value] : was.items()) {
      if (!is.is_object() || !is.contains(key)) return at + "/" + key;
      if (std::string lacks = Lacks(value, is[key], at + "/" + key); !lacks.empty()) return lacks;
    }
    return "";
  }
  if (was.is_array()) {
    if (!is.is_array() || is.size() != was.size()) return at;
    for (std::size_t i = 0; i < was.size(); ++i) {
      const std::string lacks = Lacks(was[i], is[i], at + "/" + std::to_string(i));
      if (!lacks.empty()) return lacks;
    }
    return "";
  }
  return was == is ? "" : at;
}

// What today's code says again after it has read `text`; "error: ..." if it can't read it.
using Again = std::function<std::string(const std::string& text)>;

template <class Decode, class Encode>
Again Through(Decode decode, Encode encode) {
  return [decode, encode](const std::string& text) -> std::string {
    const auto read = decode(text);
    return read ? encode(*read) : "error: " + read.error();
  };
}

const std::map<std::string, Again>& Readers() {
  using namespace membership;
  static const std::map<std::string, Again> kReaders = {
      {"view", Through(DecodeView, [](const View& v) { return EncodeView(v); })},
      {"candidate", Through(DecodeCandidate, EncodeCandidate)},
      {"message", Through([](const std::string& text) { return DecodeMessage(text); },
                          [](const Message& m) { return EncodeMessage(m); })},
      {"report", Through(DecodeReport, EncodeReport)},
      {"state", Through(DecodeState, EncodeState)},
      {"record", Through(DecodeRecord, EncodeRecord)},
  };
  return kReaders;
}

membership::View SampleView() {
  membership::View view;
  view.epoch = membership::MakeEpoch(1, 7);
  view.parent = membership::MakeEpoch(1, 6);
  view.reason = membership::Reason::kPodDrained;
  view.train = true;
  view.planned = true;
  view.coordinator = "u1";
  view.pods = {{"u1", "job-worker-0", 3, "n", "z", "h:1", "h:2", "h:3", true},
               {"u2", "job-worker-1", 1, "n", "z", "h:4", "h:5", "h:6"}};
  view.ranks = {{0, 0, 2, "h:7", "rm-1", false}, {1, 0, 1, "h:8", "rm-2", true}};
  return view;
}

membership::Message SampleMessage(membership::MessageKind kind) {
  const auto view = std::make_shared<const membership::View>(SampleView());
  membership::Message message;
  message.kind = kind;
  message.from = "u1";
  message.incarnation = 3;
  message.view = view->parent;
  message.ballot = {2, "u1"};
  message.promised = {4, "u2"};
  message.accepted = {1, "u3"};
  message.value = message.base = view;
  message.number = 5;
  message.pods = {"u1", "u2"};
  message.workers = {{1, 2, "h:1", "", false}};
  message.text = "why";
  if (kind == membership::MessageKind::kJoin)
    message.candidate = {view->pods[0], {{0, 1, "", "", true}}};
  return message;
}

// The JSON messages of this version, by file name.
std::map<std::string, std::string> JsonMessages() {
  using namespace membership;
  const auto view = std::make_shared<const View>(SampleView());
  const Candidate candidate{view->pods[0], {{0, 2, "h:7", "rm-1", true}}};
  PersistentState state;
  state.incarnation = 9;
  state.view = state.accepted_value = view;
  state.promised = {3, "u1"};
  state.accepted = {2, "u2"};
  state.lineage = 1;
  state.ran = true;
  QuorumRecord record = NewRecord(view);
  record.promised = {3, "u1"};
  std::map<std::string, std::string> files = {
      {"view.json", EncodeView(*view)},
      {"candidate.json", EncodeCandidate(candidate)},
      {"report.json", EncodeReport({2, view, false, true, candidate})},
      {"state.json", EncodeState(state)},
      {"record.json", EncodeRecord(record)}};
  for (int kind = 0; kind <= static_cast<int>(MessageKind::kFinishing); ++kind) {
    const auto message = SampleMessage(static_cast<MessageKind>(kind));
    files["message-" + std::string(MessageKindText(message.kind)) + ".json"] =
        EncodeMessage(message);
  }
  return files;
}

// What goes over gRPC, in Protocol Buffers' bytes: the registration, a report and a notice.
std::map<std::string, std::string> ProtoMessages() {
  v1::SidecarReport registration, readiness, exit;
  auto& r = *registration.mutable_registration();
  r.set_job_namespace("default");
  r.set_job_name("digits");
  r.set_job_uid("j");
  r.set_pod_name("digits-worker-0");
  r.set_pod_uid("u1");
  r.set_http_address("h:3");
  r.set_epoch(7);
  r.set_boot_id("b");
  readiness.mutable_readiness()->set_ready(true);
  readiness.mutable_readiness()->add_missing_slots(1);
  readiness.mutable_readiness()->set_member("{}");
  exit.mutable_worker_exit()->set_slot(1);
  exit.mutable_worker_exit()->set_exit_code(137);
  exit.mutable_worker_exit()->set_signal(9);
  exit.mutable_worker_exit()->set_restarting(true);
  v1::OperatorNotice drain, target;
  drain.mutable_drain()->add_pod_uids("u1");
  drain.mutable_drain()->set_reason("why");
  drain.mutable_drain()->set_deadline_unix_ms(1);
  drain.mutable_drain()->set_left_ms(1);
  target.mutable_target()->set_min_pods(2);
  target.mutable_target()->set_expected_pods(3);
  v1::MemberMessage member;
  member.set_job_uid("j");
  member.set_from("u1");
  member.set_incarnation(1);
  member.set_to("u2");
  member.set_address("h:1");
  member.set_body("{}");
  return {{"report-registration.pb", registration.SerializeAsString()},
          {"report-readiness.pb", readiness.SerializeAsString()},
          {"report-exit.pb", exit.SerializeAsString()},
          {"notice-drain.pb", drain.SerializeAsString()},
          {"notice-target.pb", target.SerializeAsString()},
          {"member.pb", member.SerializeAsString()}};
}

// Without what today's code does not know.
std::string KnownPart(const std::string& name, const std::string& bytes) {
  const auto again = [&bytes](auto message) {
    if (!message.ParseFromString(bytes)) return std::string("can't be read");
    message.DiscardUnknownFields();
    return message.SerializeAsString();
  };
  if (name.starts_with("report")) return again(v1::SidecarReport());
  if (name.starts_with("notice")) return again(v1::OperatorNotice());
  return again(v1::MemberMessage());
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Calls `look` for each recorded file that ends so.
int ForEachRecorded(const std::string& ending,
                    const std::function<void(const fs::path& path)>& look) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(RM_COMPAT_DIR)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || !name.ends_with(ending)) continue;
    SCOPED_TRACE(entry.path().string());
    look(entry.path());
    ++files;
  }
  return files;
}

TEST(WireTest, WhatEarlierVersionsSaidInJsonIsReadAndNothingOfItIsLost) {
  const int files = ForEachRecorded(".json", [](const fs::path& path) {
    const std::string name = path.stem().string();
    if (name == "status" || name == "timeline" || name.starts_with("frame-")) return;
    const auto reader = Readers().find(name.substr(0, name.find('-')));
    ASSERT_NE(reader, Readers().end()) << "nobody reads a " << name;
    const std::string was = ReadFile(path), is = reader->second(was);
    ASSERT_FALSE(is.starts_with("error: ")) << is;
    EXPECT_EQ(Lacks(json::parse(was), json::parse(is)), "");
  });
  EXPECT_GE(files, static_cast<int>(JsonMessages().size()));
}

TEST(WireTest, WhatEarlierVersionsSaidOverGrpcHasItsFieldsStill) {
  const int files = ForEachRecorded(".pb", [](const fs::path& path) {
    const std::string was = ReadFile(path);
    EXPECT_EQ(KnownPart(path.stem().string(), was), was);
  });
  EXPECT_GE(files, 6);
}

TEST(WireTest, TheStatusOfEarlierSidecarsIsShown) {
  const int files = ForEachRecorded("status.json", [](const fs::path& path) {
    const auto status = inspection::ParseSidecarStatus(json::parse(ReadFile(path)));
    ASSERT_TRUE(status);
    EXPECT_EQ(status->pod, "digits-worker-0");
    EXPECT_EQ(status->state, "Training");
    EXPECT_EQ(status->ranks.size(), 2u);
    ASSERT_EQ(status->workers.size(), 1u);
    EXPECT_EQ(status->workers[0].rank, 0);
    EXPECT_GT(status->workers[0].times.seconds, 0);
    EXPECT_EQ(status->values.count("loss"), 1u);
    ASSERT_FALSE(status->rebuilds.empty());
    EXPECT_EQ(status->rebuilds.back().reason, "WorkerLost");
  });
  EXPECT_GE(files, 1);
}

TEST(WireTest, TheTimelineOfEarlierSidecarsIsShown) {
  const int files = ForEachRecorded("timeline.json", [](const fs::path& path) {
    auto trace = inspection::ParsePodTrace(json::parse(ReadFile(path)));
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->pod, "digits-worker-0");
    EXPECT_TRUE(trace->coordinator);
    EXPECT_EQ(trace->machine, "b");
    ASSERT_EQ(trace->workers.size(), 1u);
    EXPECT_EQ(trace->workers[0].rank, 0);
    ASSERT_EQ(trace->missing.size(), 1u);
    EXPECT_EQ(trace->missing[0].why, "it did not answer in time");
    EXPECT_EQ(trace->events.size(), 6u);
    EXPECT_EQ((trace->rows[{0, 3}]), "operations");
    const std::string file = inspection::ChromeText(inspection::LayTogether({std::move(*trace)}));
    for (const char* part :
         {"\"rank 0: digits-worker-0/0\"", "\"decide\"", "\"step 12\"", "\"grad\""})
      EXPECT_NE(file.find(part), std::string::npos) << part;
  });
  EXPECT_GE(files, 1);
}

TEST(WireTest, WhatEarlierSidecarsAskOfATimelineIsUnderstood) {
  const int files = ForEachRecorded("frame-timeline-ask.json", [](const fs::path& path) {
    const auto request = elastic::ReadTimelineRequest(json::parse(ReadFile(path)));
    EXPECT_EQ(request.number, 7u);
    EXPECT_EQ(request.recent.process, 3);
    EXPECT_EQ(request.recent.span, std::chrono::seconds(5));
    EXPECT_FALSE(request.recent.tensors);
    EXPECT_EQ(request.recent.most_bytes, 100'000u);
  });
  EXPECT_GE(files, 1);
}

TEST(WireTest, WhatEarlierWorkersTellOfATimelineIsTaken) {
  const int files = ForEachRecorded("frame-timeline-told.json", [](const fs::path& path) {
    app::TimelineGathering gathering(1, {}, 1000);
    gathering.Expect({.slot = 0, .connection = 5});
    gathering.OnPiece(5, json::parse(ReadFile(path)));
    EXPECT_TRUE(gathering.workers()[0].whole);
    EXPECT_EQ(gathering.workers()[0].text, ",\n{\"name\":\"round\"}");
  });
  EXPECT_GE(files, 1);
}

TEST(WireTest, RecordsThisVersionWhereThatIsAskedFor) {
  const char* folder = std::getenv("RINGMASTER_RECORD_WIRE");
  if (folder == nullptr) GTEST_SKIP() << "for a release";
  auto files = JsonMessages();
  files.merge(ProtoMessages());
  for (const auto& [name, text] : files)
    std::ofstream(fs::path(folder) / name, std::ios::binary) << text;
}

}  // namespace
}  // namespace ringmaster
