// Sidecars of one job that tell each other what was before: their records and handovers, without
// agents around them.
#include "sidecar/app/history_handover.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "sidecar/app/training_history.h"
#include "sidecar/health/metrics.h"

namespace ringmaster::app {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kBegin = 1'700'000'000'000;

class HistoryHandoverTest : public testing::Test {
 protected:
  struct Sidecar {
    explicit Sidecar(HistoryHandoverTest* test, const std::string& uid)
        : metrics("default", "job", uid),
          history(1, &metrics),
          handover(uid, &history,
                   [test, uid](const std::string& to, const std::string& address,
                               const std::string& body) {
                     EXPECT_EQ(address, "at-" + to);
                     test->messages_.push_back({uid, to, body});
                   }) {}
    health::Metrics metrics;
    TrainingHistory history;
    HistoryHandover handover;
  };
  struct Message {
    std::string from, to, body;
  };

  // Of these pods, the last `joined` of which are new in it.
  static membership::View ViewOf(const std::vector<std::string>& pods, std::size_t joined,
                                 uint64_t number) {
    membership::View view;
    view.epoch = membership::MakeEpoch(1, number);
    view.parent = number == 1 ? 0 : view.epoch - 1;
    view.reason = number == 1 ? membership::Reason::kBootstrap : membership::Reason::kPodJoined;
    for (const std::string& pod : pods) {
      const auto i = static_cast<uint32_t>(view.pods.size());
      view.ranks.push_back({.pod = i, .joined = i + joined >= pods.size()});
      view.pods.push_back({.uid = pod, .name = pod, .address = "at-" + pod});
    }
    return view;
  }

  // A view of these, which all of them enter.
  void Enter(const std::vector<std::string>& pods, std::size_t joined) {
    ++number_;
    const auto view = std::make_shared<membership::View>(ViewOf(pods, joined, number_));
    for (const std::string& pod : pods) {
      auto& sidecar = sidecars_[pod];
      if (sidecar == nullptr) sidecar = std::make_unique<Sidecar>(this, pod);
      const membership::View* before = views_[pod].get();
      (void)sidecar->history.Installed(before, *view, now_, UnixMs());
      sidecar->handover.Entered(*view, number_ == 1, now_);
      views_[pod] = view;
    }
    view_ = view;
  }
  // So long all train, a step a second; messages to `silent` are lost.
  void Train(seconds time, const std::string& silent = "") {
    const SteadyTime end = now_ + time;
    for (; now_ < end; now_ += milliseconds(250)) {
      for (const auto& pod : view_->pods) {
        Sidecar& sidecar = *sidecars_[pod.uid];
        WorkerProcess worker(0, 1);
        const auto step = static_cast<uint64_t>((now_ - kStart) / seconds(1));
        const json values = {{"loss", 1.0 / static_cast<double>(step + 1)}};
        worker.figures.TakePing({{"step", step}, {"values", values}});
        sidecar.history.Sample({worker}, view_, now_, UnixMs());
        sidecar.handover.Tick(now_, /*view_changes=*/false);
      }
      Deliver(silent);
    }
  }
  void Deliver(const std::string& silent) {
    while (!messages_.empty()) {
      const Message message = messages_.front();
      messages_.pop_front();
      most_ = std::max(most_, message.body.size());
      ++delivered_;
      if (message.to != silent)
        sidecars_[message.to]->handover.OnMessage(message.body, message.from, now_);
    }
  }
  json Record(const std::string& pod) { return sidecars_[pod]->history.record().ToJson(); }
  std::vector<uint64_t> Changes(const std::string& pod) {
    std::vector<uint64_t> numbers;
    for (const auto& rebuild : sidecars_[pod]->history.rebuilds().all())
      numbers.push_back(membership::EpochNumber(rebuild.epoch));
    return numbers;
  }
  int64_t UnixMs() const { return kBegin + (now_ - kStart) / milliseconds(1); }

  const SteadyTime kStart{seconds(1000)};
  SteadyTime now_ = kStart;
  uint64_t number_ = 0;
  membership::ViewPtr view_;
  std::map<std::string, membership::ViewPtr> views_;
  std::map<std::string, std::unique_ptr<Sidecar>> sidecars_;
  std::deque<Message> messages_;
  std::size_t most_ = 0;
  int delivered_ = 0;
};

TEST_F(HistoryHandoverTest, ThoseWhoBeginTheJobAskNobody) {
  Enter({"a", "b"}, 0);
  Train(seconds(60));
  EXPECT_EQ(delivered_, 0);
  EXPECT_TRUE(sidecars_["a"]->handover.complete());
}

TEST_F(HistoryHandoverTest, AJobAllOfWhosePodsHaveBeenReplacedRemembersItsFirstSteps) {
  Enter({"a", "b"}, 0);
  Train(seconds(900));
  Enter({"b", "c"}, 1);
  Train(seconds(20));
  Enter({"c", "d"}, 1);
  Train(seconds(20));
  Enter({"d", "e"}, 1);
  Train(seconds(20));
  for (const char* pod : {"d", "e"}) {
    const json record = Record(pod);
    EXPECT_EQ(record["samples"][0][0], kBegin) << pod;
    EXPECT_EQ(record["samples"][10][2], 10) << pod << ": the tenth step";
    EXPECT_NEAR(record["samples"][10][3].get<double>(), 1.0 / 11, 1e-6);
    EXPECT_GT(record["samples"].size(), 950u);
    EXPECT_EQ(Changes(pod), (std::vector<uint64_t>{2, 3, 4})) << pod;
  }
  EXPECT_LT(most_, HistoryHandover::kMostPage / 2);
}

TEST_F(HistoryHandoverTest, WhatWasSeenWhileItWaitedToEnterGivesWayToWhatTheOthersDid) {
  Enter({"a", "b"}, 0);
  Train(seconds(30));
  sidecars_["c"] = std::make_unique<Sidecar>(this, "c");
  sidecars_["c"]->history.Sample({}, nullptr, now_, UnixMs());
  Train(seconds(5));
  Enter({"a", "b", "c"}, 1);
  Train(seconds(10));
  const json record = Record("c");
  EXPECT_GT(record["samples"].size(), 30u);
  for (const json& row : record["samples"]) EXPECT_GE(row[1], 2) << row;
}

TEST_F(HistoryHandoverTest, OfALongJobTheRecordStaysSmallAndKeepsItsBeginning) {
  Enter({"a", "b"}, 0);
  Train(seconds(7000));
  Enter({"a", "b", "c"}, 1);
  Train(seconds(20));
  const json record = Record("c");
  EXPECT_EQ(record["samples"][0][0], kBegin);
  EXPECT_LE(record["samples"].size(), TrainingRecord::kMostSamples);
  EXPECT_GE(record["periodSeconds"], 4) << "no more often than those of before";
}

TEST_F(HistoryHandoverTest, WhereOneIsSilentAnotherIsAsked) {
  Enter({"a", "b"}, 0);
  Train(seconds(30));
  Enter({"a", "b", "c"}, 1);
  const std::string asked = std::hash<std::string>()("c") % 2 == 0 ? "a" : "b";
  Train(seconds(5), asked);
  EXPECT_FALSE(sidecars_["c"]->handover.complete());
  Train(seconds(30), asked);
  EXPECT_TRUE(sidecars_["c"]->handover.complete());
  EXPECT_EQ(Record("c")["samples"][0][0], kBegin);
}

TEST_F(HistoryHandoverTest, WhereNobodyAnswersItEndsInTimeAndRemembersWhatItSees) {
  Enter({"a"}, 0);
  Train(seconds(30));
  Enter({"a", "c"}, 1);
  Train(seconds(120), "a");
  EXPECT_TRUE(sidecars_["c"]->handover.complete());
  EXPECT_GT(Record("c")["samples"].size(), 80u);
  const int before = delivered_;
  Train(seconds(60), "a");
  EXPECT_EQ(delivered_, before);
}

TEST_F(HistoryHandoverTest, NothingIsAskedSoonAfterAViewOrWhileOneChanges) {
  Enter({"a"}, 0);
  Train(seconds(30));
  Enter({"a", "c"}, 1);
  HistoryHandover& handover = sidecars_["c"]->handover;
  handover.Tick(now_, false);
  EXPECT_TRUE(messages_.empty());
  handover.Tick(now_ + seconds(1), /*view_changes=*/true);
  EXPECT_TRUE(messages_.empty());
  handover.Tick(now_ + seconds(1), false);
  EXPECT_EQ(messages_.size(), 1u);
}

TEST_F(HistoryHandoverTest, WhoIsNotAskedOrNotInTheViewTellsNothing) {
  Enter({"a", "b"}, 0);
  Train(seconds(30));
  Enter({"a", "b", "c"}, 1);
  const std::string page =
      json{{"page", {{"values", json::array()}, {"samples", {{1, 1, 1}}}, {"complete", true}}}}
          .dump();
  HistoryHandover& handover = sidecars_["c"]->handover;
  handover.OnMessage(page, "a", now_);
  handover.OnMessage(page, "stranger", now_);
  handover.OnMessage(R"({"ask":{}})", "stranger", now_);
  handover.OnMessage("no json", "a", now_);
  EXPECT_TRUE(messages_.empty());
  EXPECT_FALSE(handover.complete());
  EXPECT_TRUE(Record("c")["samples"].empty());
}

TEST_F(HistoryHandoverTest, StepsNeverGoBackThoughAWorkerThatJoinsHasSaidNone) {
  Enter({"a", "b"}, 0);
  Train(seconds(30));
  Enter({"a", "b", "c"}, 1);
  sidecars_["c"]->history.tracker().SawStep(30);  // as heartbeats say
  for (int i = 0; i < 40; ++i, now_ += milliseconds(250)) {
    const WorkerProcess silent(0, 1);
    sidecars_["c"]->history.Sample({silent}, view_, now_, UnixMs());
    sidecars_["c"]->handover.Tick(now_, false);
    Deliver("");
  }
  const json record = Record("c");
  EXPECT_GT(record["samples"].size(), 35u) << "those of before, and its own";
  for (std::size_t i = 1; i < record["samples"].size(); ++i)
    EXPECT_GE(record["samples"][i][2], record["samples"][i - 1][2]) << i;
}

TEST_F(HistoryHandoverTest, ASampleOfAClockThatIsBehindIsLeftOut) {
  TrainingRecord record;
  record.Prepend(json::parse(R"({"samples": [[5000, 1, 1]]})"), 9000);
  record.Add(now_, 4000, 1, 2, {});
  record.Add(now_, 6000, 1, 3, {});
  EXPECT_EQ(record.ToJson()["samples"], json::parse("[[5000, 1, 1], [6000, 1, 3]]"));
}

TEST_F(HistoryHandoverTest, AClockThatWasFarAheadDoesNotKeepOutWhatComes) {
  TrainingRecord record;
  record.Prepend(json::parse(R"({"samples": [[5000, 1, 1], [90000000, 1, 2]]})"), 99000000);
  record.Add(now_, 6000, 1, 3, {});
  EXPECT_EQ(record.ToJson()["samples"], json::parse("[[5000, 1, 1], [6000, 1, 3]]"));
}

TEST_F(HistoryHandoverTest, WhatIsNoSampleAndWhatIsOutOfOrderIsLeftOut) {
  TrainingRecord record;
  EXPECT_EQ(record.Prepend(json::parse(R"({"periodSeconds": 99999999999, "values": ["loss", 7],
      "samples": [[5, 1, 1, 0.5], [5, 1, 1], [4, 1, 1], [6, -1, 1], ["7", 1, 1], [8, 1], [9, 2, 3, "x"], [1000, 1, 1]]})"),
                           1000),
            2u);
  EXPECT_EQ(record.ToJson()["samples"], json::parse("[[5, 1, 1, 0.5], [9, 2, 3, null]]"));
  EXPECT_EQ(record.Prepend(json::parse(R"({"samples": [[4, 1, 1], [5, 1, 1]]})"), 1000), 1u);
  EXPECT_EQ(record.since_unix_ms(), 4);
}

}  // namespace
}  // namespace ringmaster::app
