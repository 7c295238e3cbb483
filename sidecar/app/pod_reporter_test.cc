#include "sidecar/app/pod_reporter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sidecar/app/testing/agent_parts.h"

namespace ringmaster::app {
namespace {

using std::chrono::seconds;

class PodReporterTest : public testing::Test {
 protected:
  PodReporterTest() { reporter_.Start(); }
  auto Count(const std::string& entry) const {
    return std::count(parts_.log.begin(), parts_.log.end(), entry);
  }

  testing_parts::AgentParts parts_;
  OperatorOrders orders_{parts_.clock, &parts_.membership, &parts_.table, &parts_.departure,
                         &parts_.reports};
  PodReporter reporter_{{.uid = "u0", .name = "p0"},
                        seconds(60),
                        parts_.clock,
                        {.membership = &parts_.membership,
                         .table = &parts_.table,
                         .departure = &parts_.departure,
                         .orders = &orders_,
                         .reports = &parts_.reports,
                         .metrics = &parts_.metrics}};
};

TEST_F(PodReporterTest, ReadinessIsReportedWhenItChanges) {
  reporter_.AfterEvents();
  EXPECT_EQ(Count("readiness"), 0) << "no worker has come yet";
  parts_.StartTraining();
  reporter_.AfterEvents();
  reporter_.AfterEvents();
  EXPECT_EQ(Count("readiness"), 1);
  parts_.table.OnFrame(2, {{"t", "ping"}, {"n", 1}, {"holds", 7}}, parts_.now);
  reporter_.AfterEvents();
  EXPECT_EQ(Count("readiness"), 1) << "who holds the state changes in each view";
  parts_.table.OnFrame(1, {{"t", "exited"}, {"slot", 0}, {"incarnation", 1}}, parts_.now);
  reporter_.AfterEvents();
  EXPECT_EQ(Count("readiness"), 2);
}

TEST_F(PodReporterTest, ThatAllPodsLeaveIsReportedOnceToEachOperator) {
  parts_.StartTraining();
  orders_.OnConnection(true);
  parts_.departure.Drain({"u0"}, "Suspended", {}, {});
  reporter_.AfterEvents();
  EXPECT_EQ(Count("all leave"), 0) << "this one does, of three";
  orders_.OnConnection(false);
  parts_.departure.Drain({"u0", "u1", "u2"}, "Suspended", {}, {});
  reporter_.AfterEvents();
  EXPECT_EQ(Count("all leave"), 0) << "nobody would hear it";
  orders_.OnConnection(true);
  reporter_.Tick();
  reporter_.Tick();
  EXPECT_EQ(Count("all leave"), 1);
  orders_.OnConnection(true);
  reporter_.AfterEvents();
  EXPECT_EQ(Count("all leave"), 2);
}

TEST_F(PodReporterTest, APodInNoViewAfterTheInitTimeoutSaysSoOnce) {
  parts_.now += seconds(59);
  reporter_.CheckInitTimeout();
  EXPECT_EQ(Count("readiness"), 0);
  parts_.now += seconds(1);
  reporter_.CheckInitTimeout();
  EXPECT_EQ(Count("readiness"), 1) << "though no worker has come";
  parts_.now += seconds(60);
  reporter_.CheckInitTimeout();
  EXPECT_EQ(Count("readiness"), 1);
}

TEST_F(PodReporterTest, APodThatHasAViewIsNotTooLate) {
  parts_.StartTraining();
  parts_.now += seconds(60);
  reporter_.CheckInitTimeout();
  EXPECT_EQ(Count("readiness"), 0);
}

}  // namespace
}  // namespace ringmaster::app
