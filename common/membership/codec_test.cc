// Views, messages and stored state come back from their JSON as they were; errors name what is
// wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/membership/message_json.h"
#include "common/membership/state_json.h"
#include "common/membership/view_json.h"

namespace ringmaster::membership {
namespace {

using testing::HasSubstr;

View Sample() {
  View view;
  view.epoch = MakeEpoch(1, 7);
  view.parent = MakeEpoch(1, 6);
  view.reason = Reason::kPodDrained;
  view.train = false;
  view.planned = true;
  view.coordinator = "u1";
  view.pods = {{"u1", "job-worker-0", 3, "n", "z", "h:1", "h:2", "h:3"},
               {"u2", "job-worker-1", 1, "n", "z", "h:4", "h:5", "h:6"}};
  view.ranks = {{0, 0, 2, "h:7", "rm-1", false}, {1, 0, 1, "h:8", "rm-2", true}};
  return view;
}

TEST(ViewJsonTest, AViewSurvivesTheTrip) {
  auto view = DecodeView(EncodeView(Sample()));
  ASSERT_TRUE(view) << view.error();
  EXPECT_EQ(*view, Sample());
}

TEST(ViewJsonTest, BadInputNamesFieldValueAndWhatIsAllowed) {
  struct Case {
    const char* path;
    nlohmann::json value;
    const char* error;
  };
  const Case cases[] = {
      {"/epoch", "x", "view.epoch: \"x\" is not an integer"},
      {"/epoch", -1, "view.epoch: -1 is not an integer of at least 0"},
      {"/epoch", 0, "view.epoch: 0 is not an epoch above 0"},
      {"/parent", MakeEpoch(2, 1), "view.parent"},
      {"/reason", 1, "view.reason: 1 is not a string"},
      {"/train", 1, "view.train: 1 is not true or false"},
      {"/coordinator", "nobody", "view.coordinator: \"nobody\" is not the uid of one of the pods"},
      {"/pods", 5, "view.pods: 5 is not an array"},
      {"/pods/1/uid", "u1", "view.pods: \"u1\" is not listed once"},
      {"/pods/0/address", 1, "view.pods[0].address: 1 is not a string"},
      {"/ranks/1/pod", 2, "view.ranks[1].pod: 2 is not an index into pods"},
      {"/ranks/1/slot", 1ull << 40, "view.ranks[1].slot"},
  };
  for (const Case& c : cases) {
    nlohmann::json json = ToJson(Sample());
    json[nlohmann::json::json_pointer(c.path)] = c.value;
    auto view = ViewFromJson(json);
    ASSERT_FALSE(view) << c.path;
    EXPECT_THAT(view.error(), HasSubstr(c.error));
  }
  nlohmann::json json = ToJson(Sample());
  json.erase("pods");
  EXPECT_EQ(ViewFromJson(json).error(), "view.pods is missing; it must be an array");
  EXPECT_THAT(DecodeView("{").error(), HasSubstr("not JSON"));
  EXPECT_THAT(DecodeView("[]").error(), HasSubstr("view: [] is not an object"));
}

// Other members may run a newer version. A member that refused their view would be left behind.
TEST(ViewJsonTest, AnUnknownReasonIsAPlainFault) {
  nlohmann::json json = ToJson(Sample());
  json["reason"] = "Boredom";
  const auto view = ViewFromJson(json);
  ASSERT_TRUE(view) << view.error();
  View expected = Sample();
  expected.reason = Reason::kWorkerLost;
  EXPECT_EQ(*view, expected);
}

TEST(ViewJsonTest, UnknownFieldsAreIgnored) {
  nlohmann::json json = ToJson(Sample());
  json["later"] = 1;
  EXPECT_TRUE(ViewFromJson(json));
}

TEST(ViewJsonTest, ACandidateSurvivesTheTrip) {
  Candidate candidate{Sample().pods[0], {{0, 2, "h:7", "rm-1", true}, {1, 1, "h:8", "rm-2"}}};
  candidate.workers[1].holds = MakeEpoch(1, 4);
  auto again = DecodeCandidate(EncodeCandidate(candidate));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(*again, candidate);
}

TEST(MessageJsonTest, EveryKindSurvivesTheTrip) {
  for (int kind = 0; kind <= static_cast<int>(MessageKind::kFinishing); ++kind) {
    Message message;
    message.kind = static_cast<MessageKind>(kind);
    message.from = "u1";
    message.incarnation = 3;
    message.view = MakeEpoch(1, 6);
    message.ballot = {2, "u1"};
    message.promised = {4, "u2"};
    message.accepted = {1, "u3"};
    message.value = std::make_shared<const View>(Sample());
    message.base = message.value;
    message.number = 5;
    message.pods = {"u1", "u2"};
    message.workers = {{1, 2, "h:1", "", false}};
    message.text = "why";
    if (message.kind == MessageKind::kJoin) {
      message.candidate = {Sample().pods[0], {{0, 1, "", "", true}}};
      message.reason = Reason::kRejoin;
    }
    auto again = DecodeMessage(EncodeMessage(message));
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(*again, message) << Describe(*again);
  }
}

TEST(MessageJsonTest, BadInputIsRefusedWithAReason) {
  EXPECT_THAT(DecodeMessage("nonsense").error(), HasSubstr("message: not JSON"));
  EXPECT_THAT(DecodeMessage(R"({"kind":"shout","from":"a","incarnation":1,"view":1})").error(),
              HasSubstr("message.kind: \"shout\" is not a known kind"));
  EXPECT_THAT(DecodeMessage(R"({"kind":"decided","from":"a","incarnation":1,"view":1})").error(),
              HasSubstr("message.value is missing; it must be a view"));
  EXPECT_THAT(DecodeMessage(R"({"kind":"prepare","from":"a","incarnation":1,"view":1})").error(),
              HasSubstr("message.ballot is missing"));
  EXPECT_THAT(DecodeMessage(R"({"kind":"fetch","from":"a","incarnation":-1,"view":1})").error(),
              HasSubstr("message.incarnation: -1 is not"));
}

TEST(StateJsonTest, AMembersFileSurvivesTheTrip) {
  PersistentState state;
  state.incarnation = 9;
  state.view = std::make_shared<const View>(Sample());
  state.promised = {3, "u1"};
  state.accepted = {2, "u2"};
  state.accepted_value = state.view;
  state.stopping = state.resigned = state.planning = true;
  state.lineage = 1;
  state.ran = true;
  auto again = DecodeState(EncodeState(state));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(EncodeState(*again), EncodeState(state));
  EXPECT_EQ(*again->accepted_value, Sample());
  EXPECT_TRUE(again->stopping);
  EXPECT_TRUE(again->planning);
}

TEST(StateJsonTest, ATornFileIsAnErrorNotAnEmptyState) {
  PersistentState state;
  state.incarnation = 9;
  std::string text = EncodeState(state);
  EXPECT_FALSE(DecodeState(text.substr(0, text.size() / 2)));
  EXPECT_THAT(DecodeState("{}").error(), HasSubstr("missing"));
}

TEST(StateJsonTest, TheRecordSurvivesTheTrip) {
  QuorumRecord state = NewRecord(std::make_shared<const View>(Sample()));
  state.promised = {3, "u1"};
  auto again = DecodeRecord(EncodeRecord(state));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(EncodeRecord(*again), EncodeRecord(state));
  EXPECT_THAT(DecodeRecord(R"({"format":1,"lineage":0})").error(), HasSubstr("record.view"));
}

TEST(ViewTest, FoundingOrderIsZoneNodeThenNameWithItsNumber) {
  auto make = [](const char* uid, const char* name, const char* node, const char* zone) {
    return Candidate{{uid, name, 1, node, zone, "", "", ""}, {{0, 1, "", "", true}}};
  };
  View view = BootstrapView({make("a", "w-10", "n1", "z1"), make("b", "w-9", "n1", "z1"),
                             make("c", "w-1", "n2", "z1"), make("d", "w-0", "n0", "z2")},
                            5);
  ASSERT_EQ(view.pods.size(), 4u);
  EXPECT_EQ(view.pods[0].uid + view.pods[1].uid + view.pods[2].uid + view.pods[3].uid, "bacd");
  EXPECT_EQ(view.coordinator, "b");
  EXPECT_FALSE(view.train) << "below min_pods";
  EXPECT_EQ(EpochText(view.epoch), "1.1");
}

// Without the limit this ends the process: printing or copying such a value is recursive.
TEST(CodecTest, EndlessNestingIsRefusedWhereverItStands) {
  const std::string nested = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_THAT(DecodeMessage(nested).error(), HasSubstr("nested"));
  EXPECT_THAT(DecodeMessage(R"({"kind":)" + nested + "}").error(), HasSubstr("nested"));
  EXPECT_THAT(DecodeRecord(R"({"format":)" + nested + "}").error(), HasSubstr("nested"));
  EXPECT_THAT(DecodeReport(R"({"lineage":)" + nested + "}").error(), HasSubstr("nested"));
  EXPECT_THAT(DecodeState(nested).error(), HasSubstr("nested"));
  EXPECT_THAT(DecodeView(nested).error(), HasSubstr("nested"));
  EXPECT_THAT(DecodeCandidate(nested).error(), HasSubstr("nested"));
}

}  // namespace
}  // namespace ringmaster::membership
