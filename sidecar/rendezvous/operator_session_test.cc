#include "sidecar/rendezvous/operator_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

// A stream that takes so many reports and has ended then.
class FakeStream : public ReportSink {
 public:
  explicit FakeStream(size_t takes = 1000) : takes_(takes) {}
  bool Send(const QueuedReport& queued) override {
    if (said.size() == takes_) return false;
    said.push_back(Describe(queued.report));
    return true;
  }
  std::vector<std::string> said;

 private:
  static std::string Describe(const v1::SidecarReport& report) {
    switch (report.kind_case()) {
      case v1::SidecarReport::kRegistration:
        return "pod " + report.registration().pod_uid() + " at " +
               std::to_string(report.registration().epoch());
      case v1::SidecarReport::kReadiness:
        return report.readiness().ready() ? "ready" : "not ready";
      case v1::SidecarReport::kView:
        return (report.view().view().empty() ? "epoch " : "view ") +
               std::to_string(report.view().epoch());
      case v1::SidecarReport::kWorkerExit:
        return "exit " + std::to_string(report.worker_exit().exit_code());
      case v1::SidecarReport::kEarlierExits: {
        std::string text = "earlier";
        for (const v1::WorkerExit& exit : report.earlier_exits().exits()) {
          text += " " + std::to_string(exit.exit_code());
        }
        return text;
      }
      case v1::SidecarReport::kFinished:
        return "finished " + std::to_string(report.finished().epoch());
      case v1::SidecarReport::kHealth:
        return report.health().able() ? "able" : "unable";
      default:
        return "?";
    }
  }
  const size_t takes_;
};

class OperatorSessionTest : public testing::Test {
 protected:
  OperatorCallbacks Callbacks() {
    OperatorCallbacks callbacks;
    callbacks.on_connection = [this](bool is) { heard_.push_back(is ? "connected" : "lost"); };
    callbacks.on_accepted = [this] { heard_.push_back("accepted"); };
    callbacks.on_drain = [this](const std::vector<std::string>& pods, const std::string& why,
                                int64_t deadline, std::optional<int64_t> left,
                                std::optional<bool> all_leave) {
      heard_.push_back("drain " + pods.at(0) + " " + why + " by " + std::to_string(deadline) +
                       (left ? " in " + std::to_string(*left) : "") +
                       (!all_leave   ? ""
                        : *all_leave ? " like all"
                                     : " alone"));
    };
    callbacks.on_finish = [this](const std::string& why) { heard_.push_back("finish " + why); };
    callbacks.on_recover = [this](uint64_t lineage, bool fresh) {
      heard_.push_back("recover " + std::to_string(lineage) + (fresh ? " fresh" : ""));
    };
    return callbacks;
  }
  static job::Registration Pod() {
    job::Registration registration;
    registration.pod_uid = "u1";
    registration.epoch = 7;
    return registration;
  }
  // Of an operator of today, or of an earlier version.
  static v1::OperatorNotice Accepted(bool asks_for_views = true) {
    v1::OperatorNotice notice;
    notice.mutable_accepted()->set_asks_for_views(asks_for_views);
    return notice;
  }
  static v1::OperatorNotice ViewWanted(uint64_t epoch) {
    v1::OperatorNotice notice;
    notice.mutable_view_wanted()->set_epoch(epoch);
    return notice;
  }
  static membership::ViewPtr View(uint64_t epoch, const std::string& coordinator = "u1") {
    membership::View view;
    view.epoch = epoch;
    view.coordinator = coordinator;
    return std::make_shared<const membership::View>(std::move(view));
  }
  static job::WorkerExit ExitWith(int code) {
    job::WorkerExit exit;
    exit.exit_code = code;
    return exit;
  }

  std::vector<std::string> heard_;
  OperatorSession session_{Pod(), Callbacks()};
};

TEST_F(OperatorSessionTest, EveryStreamIsToldWhatEveryOperatorHasToKnow) {
  FakeStream first, second;
  session_.Begin(&first);
  EXPECT_THAT(first.said, ElementsAre("pod u1 at 7"));
  session_.OnNotice(Accepted());
  session_.SetReadiness({false, {0}, ""});
  session_.SetReadiness({true, {}, ""});
  session_.ReportView(View(8), "", 0);
  session_.ReportView(View(9), "", 0);
  session_.ReportHealth(true, milliseconds(0));
  session_.ReportFinished(9);
  EXPECT_EQ(first.said.back(), "finished 9");
  session_.SetEpoch(8);
  session_.End({});
  session_.Begin(&second);
  EXPECT_THAT(second.said, ElementsAre("pod u1 at 8", "ready", "view 9", "finished 9"))
      << "the newest of each, and not what only the first asked for";
}

TEST_F(OperatorSessionTest, OfADrainWhatTheOperatorSaysOfItIsHandedOn) {
  FakeStream stream;
  session_.Begin(&stream);
  session_.OnNotice(Accepted());
  heard_.clear();
  v1::OperatorNotice notice;
  notice.mutable_drain()->add_pod_uids("u2");
  notice.mutable_drain()->set_reason("why");
  notice.mutable_drain()->set_deadline_unix_ms(700);
  session_.OnNotice(notice);
  notice.mutable_drain()->set_left_ms(-5);
  session_.OnNotice(notice);
  notice.mutable_drain()->set_all_leave(false);
  session_.OnNotice(notice);
  notice.mutable_drain()->set_all_leave(true);
  session_.OnNotice(notice);
  EXPECT_THAT(heard_,
              ElementsAre("drain u2 why by 700", "drain u2 why by 700 in -5",
                          "drain u2 why by 700 in -5 alone", "drain u2 why by 700 in -5 like all"));
}

TEST_F(OperatorSessionTest, ViewsOfWhichNoOperatorHasHeardAreToldInOrder) {
  session_.ReportView(View(1), "", 0);
  session_.ReportView(View(2), "", 0);
  FakeStream broken, stream, later;
  session_.Begin(&broken);
  session_.End({});  // nobody has answered: who knows what has arrived
  session_.ReportView(View(3), "", 0);
  session_.Begin(&stream);
  session_.ReportView(View(4), "", 0);
  session_.OnNotice(Accepted());
  EXPECT_THAT(stream.said, ElementsAre("pod u1 at 7", "view 1", "view 2", "view 3", "view 4"));
  session_.End({});
  session_.Begin(&later);
  EXPECT_THAT(later.said, ElementsAre("pod u1 at 7", "view 4"));
}

TEST_F(OperatorSessionTest, OfAViewOnlyItsCoordinatorReportsMoreThanTheEpoch) {
  FakeStream stream;
  session_.Begin(&stream);
  session_.OnNotice(Accepted());
  session_.ReportView(View(1, "u1"), "", 0);
  session_.ReportView(View(2, "u2"), "", 0);
  session_.ReportView(View(2, "u2"), R"({"epoch": 2})", 0);
  EXPECT_THAT(stream.said, ElementsAre("pod u1 at 7", "view 1", "epoch 2", "epoch 2"));
  session_.OnNotice(ViewWanted(2));
  EXPECT_EQ(stream.said.back(), "view 2") << "the operator asks";
}

TEST_F(OperatorSessionTest, AnOperatorThatDoesNotAskForViewsGetsAllOfThem) {
  session_.ReportView(View(2, "u2"), "", 0);
  FakeStream stream, next, third;
  session_.Begin(&stream);
  session_.OnNotice(Accepted(false));
  session_.ReportView(View(3, "u2"), "", 0);
  EXPECT_THAT(stream.said, ElementsAre("pod u1 at 7", "view 2", "view 3"));
  session_.OnNotice(Accepted(false));
  session_.End({});
  session_.Begin(&next);
  session_.OnNotice(Accepted(true));
  session_.ReportView(View(4, "u2"), "", 0);
  EXPECT_THAT(next.said, ElementsAre("pod u1 at 7", "view 3", "epoch 4"));
  session_.End({});
  session_.Begin(&third);
  EXPECT_THAT(third.said, ElementsAre("pod u1 at 7", "epoch 4")) << "at once, as the last one was";
  session_.OnNotice(Accepted(false));
  EXPECT_EQ(third.said.back(), "view 4") << "it is of an earlier version";
}

TEST_F(OperatorSessionTest, WhoHasNoViewCanShowNone) {
  FakeStream stream;
  session_.Begin(&stream);
  session_.OnNotice(Accepted());
  session_.OnNotice(ViewWanted(2));
  session_.ReportView(nullptr, R"({"epoch": 2})", 0);
  session_.OnNotice(ViewWanted(2));
  EXPECT_THAT(stream.said, ElementsAre("pod u1 at 7", "epoch 0"));
}

TEST_F(OperatorSessionTest, AnExitArrivesWheneverThereIsAStreamAgain) {
  session_.ReportWorkerExit(ExitWith(1));
  FakeStream full(2), next;
  session_.Begin(&full);
  EXPECT_THAT(full.said, ElementsAre("pod u1 at 7", "exit 1"));
  session_.ReportWorkerExit(ExitWith(2));  // the stream has ended, and nobody has said so yet
  v1::SidecarReport unsent;
  unsent.mutable_worker_exit()->set_exit_code(1);
  session_.End({{unsent, true}});
  session_.Begin(&next);
  EXPECT_THAT(next.said, ElementsAre("pod u1 at 7", "exit 1", "exit 2"));
}

// The operator that heard of them may have died before it had counted them.
TEST_F(OperatorSessionTest, ExitsThatWereToldAreToldAgainToEveryStreamApartFromNewOnes) {
  FakeStream first, second(3), third;
  session_.Begin(&first);
  session_.ReportWorkerExit(ExitWith(1));
  session_.ReportWorkerExit(ExitWith(2));
  v1::SidecarReport unsent;
  unsent.mutable_worker_exit()->set_exit_code(2);
  session_.End({{unsent, true}});
  session_.Begin(&second);
  EXPECT_THAT(second.said, ElementsAre("pod u1 at 7", "earlier 1", "exit 2"));
  session_.ReportWorkerExit(ExitWith(3));  // this stream takes no more
  session_.End({});
  session_.Begin(&third);
  EXPECT_THAT(third.said, ElementsAre("pod u1 at 7", "earlier 1 2", "exit 3"));
}

TEST_F(OperatorSessionTest, OfManyExitsTheNewestAreToldAgain) {
  FakeStream first, second;
  session_.Begin(&first);
  for (int code = 1; code <= 40; ++code) session_.ReportWorkerExit(ExitWith(code));
  session_.End({});
  session_.Begin(&second);
  ASSERT_EQ(second.said.size(), 2u);
  EXPECT_THAT(second.said[1], testing::StartsWith("earlier 9 10 "));
  EXPECT_THAT(second.said[1], testing::EndsWith(" 39 40"));
}

TEST_F(OperatorSessionTest, ItIsConnectedFromTheFirstNoticeOfAStreamUntilItsEnd) {
  FakeStream stream;
  session_.Begin(&stream);
  EXPECT_FALSE(session_.connected()) << "it may lead nowhere";
  session_.OnNotice(Accepted());
  session_.OnNotice(Accepted());
  EXPECT_TRUE(session_.connected());
  session_.End({});
  session_.Begin(&stream);
  session_.End({});
  EXPECT_THAT(heard_, ElementsAre("connected", "accepted", "accepted", "lost"));
}

TEST_F(OperatorSessionTest, TriesComeEverMoreRarelyUntilAnOperatorAnswers) {
  FakeStream stream;
  const auto try_once = [&] {
    session_.Begin(&stream);
    return session_.End({}).count();
  };
  EXPECT_EQ(try_once(), 50);
  EXPECT_EQ(try_once(), 100);
  for (int i = 0; i < 10; ++i) try_once();
  EXPECT_EQ(try_once(), 2000);
  session_.Begin(&stream);
  session_.OnNotice(Accepted());
  EXPECT_EQ(session_.End({}).count(), 50);
}

TEST_F(OperatorSessionTest, NoticesReachWhomTheyConcernAndUnknownOnesNobody) {
  v1::OperatorNotice recover;
  recover.mutable_recover()->set_lineage(3);
  recover.mutable_recover()->set_fresh_workers(true);
  session_.OnNotice(recover);
  v1::OperatorNotice finish;
  finish.mutable_finish()->set_reason("done");
  session_.OnNotice(finish);
  session_.OnNotice(v1::OperatorNotice());  // of a newer version
  EXPECT_THAT(heard_, ElementsAre("connected", "recover 3 fresh", "finish done"));
}

TEST_F(OperatorSessionTest, AfterTheStopNothingIsSaidToAStreamThatIsGone) {
  {
    FakeStream stream;
    session_.Begin(&stream);
    session_.Stop();
  }
  session_.ReportWorkerExit(ExitWith(1));
  session_.ReportView(View(1), "", 0);
  EXPECT_THAT(heard_, IsEmpty());
}

}  // namespace
}  // namespace ringmaster::rendezvous
