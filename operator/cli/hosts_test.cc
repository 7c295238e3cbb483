#include "operator/cli/hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HostsTest, NamesAndSlotsAreRead) {
  const auto hosts = ParseHosts("a:2,me@b.example,10.0.0.3:16");
  ASSERT_TRUE(hosts.has_value()) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 3u);
  EXPECT_EQ((*hosts)[1].name, "me@b.example");
  EXPECT_EQ((*hosts)[1].slots, 1);
  EXPECT_EQ((*hosts)[2].slots, 16);
  EXPECT_EQ(SlotsOf(*hosts), 19);
}

TEST(HostsTest, WhatIsWrongIsNamed) {
  for (const char* text : {"", "a:0", "a:x", "a:2,", "a:99999", "-oProxyCommand=x:1", "a b:1",
                           "a;reboot:1", "a:1,a:2", ":3"}) {
    const auto hosts = ParseHosts(text);
    ASSERT_FALSE(hosts.has_value()) << text;
    EXPECT_EQ(hosts.error().code, ExitCode::kUsage);
    EXPECT_THAT(hosts.error().message, HasSubstr("HOST:SLOTS")) << text;
  }
}

TEST(HostsTest, LinesOfAScriptAreRead) {
  const auto hosts = ParseHostLines("a:2\n\n  me@b.example \r\nc:0\na:3\n", 4);
  ASSERT_TRUE(hosts.has_value()) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 2u);
  EXPECT_EQ((*hosts)[0].name, "me@b.example");
  EXPECT_EQ((*hosts)[0].slots, 4);
  EXPECT_EQ((*hosts)[1].slots, 3) << "the last line of a host counts";
  EXPECT_TRUE(ParseHostLines("", 1)->empty());
  for (const char* text : {"a b", "a slots=2", "-oProxyCommand=x", "a:x", "a:-1"}) {
    const auto wrong = ParseHostLines(text, 1);
    ASSERT_FALSE(wrong.has_value()) << text;
    EXPECT_THAT(wrong.error().message, HasSubstr("HOST or HOST:SLOTS")) << text;
  }
}

TEST(HostsTest, NodesHaveNamesThatKubernetesTakes) {
  EXPECT_EQ(NodeNameOf({"me@B_1.example", 1}, 0), "b-1-example-0");
  EXPECT_EQ(NodeNameOf({"10.0.0.3", 1}, 7), "10-0-0-3-7");
  EXPECT_EQ(NodeNameOf({"_", 1}, 2), "node-2");
}

TEST(HostsTest, EqualHostsGetAPodEach) {
  const Layout layout = LayOut({{"a", 2}, {"b", 2}}, 4, false);
  EXPECT_EQ(layout.slots_per_pod, 2);
  EXPECT_EQ(layout.pods, 2);
  EXPECT_THAT(layout.pods_of_host, ElementsAre(1, 1));
}

TEST(HostsTest, TheFirstHostsAreFilledFirst) {
  const Layout layout = LayOut({{"a", 4}, {"b", 4}, {"c", 4}}, 6, false);
  EXPECT_EQ(layout.slots_per_pod, 2);
  EXPECT_EQ(layout.pods, 3);
  EXPECT_THAT(layout.pods_of_host, ElementsAre(2, 1, 0));
  EXPECT_EQ(LayOut({{"a", 4}, {"b", 4}}, 5, false).slots_per_pod, 1);
}

TEST(HostsTest, AnElasticJobHasAPodForEachWorker) {
  const Layout layout = LayOut({{"a", 4}, {"b", 2}}, 3, true);
  EXPECT_EQ(layout.slots_per_pod, 1);
  EXPECT_EQ(layout.pods, 3);
  EXPECT_THAT(layout.pods_of_host, ElementsAre(4, 2));
}

}  // namespace
}  // namespace ringmaster::cli
