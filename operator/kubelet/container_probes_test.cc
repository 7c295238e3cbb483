#include "operator/kubelet/container_probes.h"

#include <gtest/gtest.h>

namespace ringmaster::kubelet {
namespace {

using kube::Json;
using std::chrono::seconds;
using Kind = ContainerProbes::Kind;

const ContainerProbes::TimePoint kBegin{seconds(100)};

ContainerProbes Begun(Json startup, Json readiness) {
  ContainerProbes probes(std::move(startup), std::move(readiness));
  probes.Begin(kBegin);
  return probes;
}

TEST(ContainerProbesTest, WithoutProbesItIsReadyAtOnce) {
  const ContainerProbes probes = Begun(Json(), Json());
  EXPECT_TRUE(probes.started());
  EXPECT_TRUE(probes.ready());
  EXPECT_FALSE(probes.due());
}

TEST(ContainerProbesTest, TheReadinessProbeCountsOnceTheStartupProbeHasPassed) {
  ContainerProbes probes =
      Begun({{"successThreshold", 2}, {"periodSeconds", 3}}, {{"initialDelaySeconds", 7}});
  EXPECT_EQ(probes.due(), kBegin);
  EXPECT_EQ(probes.current(), Kind::kStartup);
  probes.Run(kBegin);
  EXPECT_EQ(probes.due(), kBegin + seconds(3));
  EXPECT_TRUE(probes.Count(Kind::kStartup, true));
  EXPECT_FALSE(probes.started()) << "two in a row are wanted";
  EXPECT_TRUE(probes.Count(Kind::kStartup, true));
  EXPECT_TRUE(probes.started());
  EXPECT_FALSE(probes.ready());
  EXPECT_EQ(probes.due(), kBegin + seconds(7));
  EXPECT_TRUE(probes.Count(Kind::kReadiness, true));
  EXPECT_TRUE(probes.ready());
}

TEST(ContainerProbesTest, ANextStartBeginsAnew) {
  ContainerProbes probes = Begun(Json::object(), Json());
  probes.Count(Kind::kStartup, true);
  EXPECT_TRUE(probes.ready());
  probes.Begin(kBegin + seconds(9));
  EXPECT_FALSE(probes.started());
  EXPECT_EQ(probes.due(), kBegin + seconds(9));
}

TEST(ContainerProbesTest, WhileAnAnswerIsAwaitedNoneIsDue) {
  ContainerProbes probes = Begun(Json(), Json::object());
  probes.Run(kBegin);
  probes.Await();
  EXPECT_FALSE(probes.due());
  probes.Answered();
  EXPECT_EQ(probes.due(), kBegin + seconds(10));
}

TEST(ContainerProbesTest, FailuresInARowMakeItUnreadyOrEndItsStart) {
  ContainerProbes starting = Begun({{"failureThreshold", 2}}, Json());
  EXPECT_TRUE(starting.Count(Kind::kStartup, false));
  EXPECT_FALSE(starting.Count(Kind::kStartup, false)) << "it never came up";
  ContainerProbes running = Begun(Json(), {{"failureThreshold", 2}});
  running.Count(Kind::kReadiness, true);
  running.Count(Kind::kReadiness, false);
  running.Count(Kind::kReadiness, true);
  running.Count(Kind::kReadiness, false);
  EXPECT_TRUE(running.ready()) << "not in a row";
  EXPECT_TRUE(running.Count(Kind::kReadiness, false));
  EXPECT_FALSE(running.ready());
}

}  // namespace
}  // namespace ringmaster::kubelet
