// The compact form of a record contains what the plain one does, in fewer bytes.
#include "common/membership/compact_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/membership/state_json.h"

namespace ringmaster::membership {
namespace {

using testing::HasSubstr;

View Large(int pods, int slots) {
  View view;
  view.epoch = MakeEpoch(1, 7);
  view.parent = MakeEpoch(1, 6);
  view.coordinator = "uid-0";
  for (int i = 0; i < pods; ++i) {
    const std::string n = std::to_string(i), host = "10.1.0." + n;
    view.pods.push_back({"uid-" + n, "job-worker-" + n, 1, "node-" + n, "zone", host + ":9401",
                         host + ":9402", host + ":9403", i % 2 == 0, i % 3 == 0});
    for (int slot = 0; slot < slots; ++slot) {
      view.ranks.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(slot), 1,
                            host + ":" + std::to_string(5000 + slot), "rm-job-" + n, false});
    }
  }
  return view;
}

// The view after `before`: pod 2 is lost, a worker of pod 4 has started again, a new pod has come.
View After(const View& before) {
  View next = before;
  next.epoch = MakeEpoch(1, 8);
  next.parent = before.epoch;
  next.reason = Reason::kPodLost;
  next.pods.erase(next.pods.begin() + 2);
  std::erase_if(next.ranks, [](const RankEntry& rank) { return rank.pod == 2; });
  for (RankEntry& rank : next.ranks) rank.pod -= rank.pod > 2 ? 1 : 0;
  next.ranks[7].incarnation = 2;
  next.ranks[7].tcp = "elsewhere:1";
  const auto index = static_cast<std::uint32_t>(next.pods.size());
  next.pods.push_back({"new", "job-worker-new", 1, "n", "z", "unix:/path/peer", ":odd", "=odd"});
  next.ranks.push_back({index, 0, 1, "127.0.0.1:7", "s", true});
  return next;
}

QuorumRecord Voted() {
  QuorumRecord state = NewRecord(std::make_shared<const View>(Large(6, 2)));
  state.lineage = 1;
  state.promised = {3, "uid-1"};
  state.accepted = {2, "uid-0"};
  state.accepted_value = std::make_shared<const View>(After(*state.view));
  return state;
}

TEST(CompactRecordTest, HoldsWhatThePlainFormHolds) {
  for (const bool voted : {false, true}) {
    QuorumRecord state = Voted();
    if (!voted) state.accepted = {}, state.accepted_value = nullptr;
    const auto again = DecodeCompactRecord(EncodeCompactRecord(state));
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(EncodeRecord(*again), EncodeRecord(state));
    EXPECT_EQ(*again->view, *state.view);
  }
}

TEST(CompactRecordTest, AVoteCostsWhatHasChanged) {
  QuorumRecord state = NewRecord(std::make_shared<const View>(Large(200, 4)));
  const std::size_t before = EncodeCompactRecord(state).size();
  state.accepted = {2, "uid-0"};
  state.accepted_value = std::make_shared<const View>(After(*state.view));
  EXPECT_LT(EncodeCompactRecord(state).size(), before + 1500);
  EXPECT_LT(2 * before, EncodeRecord(state).size() / 2);
}

TEST(CompactRecordTest, AValueWithoutAnyMemberOfTheViewIsWrittenOut) {
  QuorumRecord state = Voted();
  View other = Large(3, 1);
  for (Pod& pod : other.pods) pod.uid = "other-" + pod.uid;
  other.coordinator = "other-uid-0";
  state.accepted_value = std::make_shared<const View>(other);
  const auto again = DecodeCompactRecord(EncodeCompactRecord(state));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(*again->accepted_value, other);
}

// The record was deleted, made anew for a later lineage, and has voted for that lineage's first
// view.
TEST(CompactRecordTest, AVoteWithoutAViewBeforeItIsKept) {
  QuorumRecord state = Voted();
  state.lineage = 2;
  state.view = nullptr;
  const auto again = DecodeCompactRecord(EncodeCompactRecord(state));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(EncodeRecord(*again), EncodeRecord(state));
  EXPECT_EQ(again->view, nullptr);
  EXPECT_EQ(*again->accepted_value, *state.accepted_value);
}

TEST(CompactRecordTest, BadInputIsRefusedWithAReason) {
  struct Case {
    const char* path;
    nlohmann::json value;
    const char* error;
  };
  const Case cases[] = {
      {"/format", 1, "record.format: only 2"},
      {"/view/pods/1", 5, "record.view.pods[1].uid"},
      {"/view/pods", 5, "a run of entries"},
      {"/view/pods/0", {{"from", 0}, {"count", 1}}, "a run of entries"},
      {"/value/pods/0/count", 7, "a run of entries"},
      {"/value/pods/0/from", -1, "a run of entries"},
      {"/value/ranks/0/pods", -5, "a run of entries"},
      {"/value/ranks/0/pods", std::int64_t{1} << 32, "a run of entries"},
      {"/value/ranks/0/count", 1ull << 60, "a run of entries"},
      {"/view/ranks/0/0", 99, "is not an index into pods"},
      {"/view/ranks/0/3", 1, "record.view.ranks[0].tcp"},
      {"/value", 7, "record.value"},
  };
  for (const Case& c : cases) {
    nlohmann::json record = nlohmann::json::parse(EncodeCompactRecord(Voted()));
    record[nlohmann::json::json_pointer(c.path)] = c.value;
    const auto read = DecodeCompactRecord(record.dump());
    ASSERT_FALSE(read) << c.path;
    EXPECT_THAT(read.error(), HasSubstr(c.error)) << c.path;
  }
  EXPECT_THAT(DecodeCompactRecord("{").error(), HasSubstr("not JSON"));
  EXPECT_THAT(DecodeCompactRecord(R"({"format":2,"lineage":0})").error(), HasSubstr("record.view"));
  EXPECT_THAT(DecodeRecord(EncodeCompactRecord(Voted())).error(), HasSubstr("format"))
      << "an older operator refuses it and leaves it as it is";
}

}  // namespace
}  // namespace ringmaster::membership
