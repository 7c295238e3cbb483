#include "operator/cli/host_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace ringmaster::cli {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Kind = HostTable::Step::Kind;

class HostTableTest : public ::testing::Test {
 protected:
  // The kinds of the next steps; steps_ keeps the newest one of each host.
  std::vector<std::pair<std::string, Kind>> Next(bool can_join = true) {
    std::vector<std::pair<std::string, Kind>> kinds;
    for (HostTable::Step& step : table_.NextSteps(can_join, "10.0.0.1", now_)) {
      kinds.emplace_back(step.host.name, step.kind);
      steps_[step.host.name] = step;
    }
    return kinds;
  }
  void Look(const std::string& host, bool here = false) {
    Machine machine = MachineOf(steps_.at(host).host, 1, steps_.at(host).index);
    machine.here = here;
    table_.Finish(host, std::move(machine), {}, now_);
  }
  void Join(const std::string& host) {
    Machine machine = steps_.at(host).machine;
    machine.pid = 42;
    node_[host] = machine.node;
    table_.Finish(host, machine, {}, now_);
  }
  // Makes the hosts nodes of the cluster, each with its slots.
  void MakeNodes(const std::vector<Host>& hosts) {
    table_.SetNamed(hosts);
    Next();
    for (const Host& host : hosts) Look(host.name);
    Next();
    for (const Host& host : hosts) {
      Join(host.name);
      seen_.nodes[node_.at(host.name)] = {.pods = std::to_string(host.slots)};
    }
    (void)table_.TakeMessages();
  }
  std::vector<NodeWrite> Tend() { return table_.Tend(seen_, now_); }

  HostTable table_{2};
  HostTable::Time now_{seconds(1000)};
  std::map<std::string, HostTable::Step> steps_;
  std::map<std::string, std::string> node_;  // by host
  RunNodes seen_;
};

TEST_F(HostTableTest, AHostIsLookedAtAndJoinsWhenTheClusterIsServed) {
  table_.SetNamed({{"a", 2}});
  EXPECT_THAT(Next(), ElementsAre(Pair("a", Kind::kLook)));
  EXPECT_THAT(Next(), IsEmpty()) << "that is under way";
  EXPECT_TRUE(table_.IsLooking());
  Look("a", true);
  EXPECT_FALSE(table_.IsLooking());
  EXPECT_EQ(table_.Looked().size(), 1u);
  EXPECT_THAT(Next(false), IsEmpty());
  EXPECT_THAT(Next(), ElementsAre(Pair("a", Kind::kJoin)));
  EXPECT_EQ(steps_.at("a").machine.pods, 2);
  EXPECT_EQ(steps_.at("a").machine.address, "10.0.0.1") << "the run's own machine";
  EXPECT_EQ(table_.Slots().Sum(), 0);
  Join("a");
  EXPECT_EQ(table_.Slots().Sum(), 2);
  EXPECT_THAT(table_.TakeMessages(),
              ElementsAre("bringing the programs to a", "host a has joined, slots: 2"));
}

TEST_F(HostTableTest, AHostThatFailsIsTriedAgainAfterLongerAndLongerPauses) {
  table_.SetNamed({{"a", 1}});
  for (const int pause : {1, 1, 10, 20, 40, 80, 160, 300, 300}) {
    ASSERT_THAT(Next(), ElementsAre(Pair("a", Kind::kLook)));
    table_.Finish("a", MachineOf({"a", 1}, 1, 0), Fail(ExitCode::kMachineLacks, "no route"), now_);
    now_ += seconds(pause) - std::chrono::milliseconds(1);
    ASSERT_THAT(Next(), IsEmpty()) << pause;
    now_ += std::chrono::milliseconds(1);
  }
  EXPECT_THAT(table_.TakeMessages(),
              ElementsAre("host a: no route",
                          "host a has failed 3 times: it is left out for 10 s, then for longer"))
      << "once";
  EXPECT_THAT(table_.Troubles(), ElementsAre(Pair("a", "no route")));
}

TEST_F(HostTableTest, EachAttemptHasANodeOfItsOwn) {
  table_.SetNamed({{"a", 1}});
  Next();
  const int first = steps_.at("a").index;
  table_.Finish("a", MachineOf({"a", 1}, 1, first), Fail(ExitCode::kMachineLacks, "x"), now_);
  now_ += seconds(1);
  Next();
  EXPECT_NE(steps_.at("a").index, first);
}

TEST_F(HostTableTest, AHostThatIsNoLongerNamedIsCordonedAndLetGoWhenItsPodsHaveLeft) {
  MakeNodes({{"a", 1}, {"b", 1}});
  EXPECT_THAT(Tend(), IsEmpty());
  table_.SetNamed({{"b", 1}});
  seen_.pods = {{.name = "w-0", .node = node_["a"]}};
  EXPECT_THAT(Tend(), ElementsAre(NodeWrite{node_["a"], NodeWrite::Kind::kCordon}));
  EXPECT_THAT(table_.Slots().closed, ElementsAre(node_["a"]));
  seen_.nodes[node_["a"]].cordoned = true;
  EXPECT_THAT(Tend(), IsEmpty()) << "its pod is still there";
  seen_.pods.clear();
  EXPECT_THAT(Tend(), ElementsAre(NodeWrite{node_["a"], NodeWrite::Kind::kDelete}));
  EXPECT_THAT(table_.TakeMessages(),
              ElementsAre("host a is no longer named: its workers leave", "host a is let go"));
  ASSERT_NE(table_.MachineOfNode(node_["a"]), nullptr) << "to be ended by hand, if need be";
}

TEST_F(HostTableTest, AHostThatIsNamedAgainBeforeItHasLeftStays) {
  MakeNodes({{"a", 1}, {"b", 1}});
  table_.SetNamed({{"b", 1}});
  Tend();
  seen_.nodes[node_["a"]].cordoned = true;
  table_.SetNamed({{"a", 1}, {"b", 1}});
  EXPECT_THAT(Tend(), ElementsAre(NodeWrite{node_["a"], NodeWrite::Kind::kUncordon}));
  EXPECT_EQ(table_.Slots().Sum(), 2);
}

TEST_F(HostTableTest, ANodeGetsTheSlotsThatTheScriptSaysNow) {
  MakeNodes({{"a", 1}, {"b", 1}});
  table_.SetNamed({{"a", 3}, {"b", 1}});
  EXPECT_THAT(Tend(), ElementsAre(NodeWrite{node_["a"], NodeWrite::Kind::kSetPods, 3}));
  EXPECT_EQ(table_.Slots().Sum(), 4);
}

TEST_F(HostTableTest, AHostOnWhichWorkersFailIsLeftOutWhileTheOthersSuffice) {
  MakeNodes({{"a", 1}, {"b", 2}});
  seen_.troubled = {node_["a"]};
  EXPECT_THAT(Tend(), ElementsAre(NodeWrite{node_["a"], NodeWrite::Kind::kCordon}));
  EXPECT_EQ(table_.Slots().Sum(), 2);
  seen_.nodes[node_["a"]].cordoned = true;
  seen_.troubled = {node_["a"], node_["b"]};
  EXPECT_THAT(Tend(), ElementsAre(NodeWrite{node_["a"], NodeWrite::Kind::kUncordon}))
      << "without both the job could not go on";
  EXPECT_THAT(table_.TakeMessages(),
              ElementsAre("host a is left out for a while: workers fail on it",
                          "host a is no longer left out"));
}

TEST_F(HostTableTest, ANodeThatHasEndedIsAFailureOfItsHostUnlessTheListIsOlder) {
  MakeNodes({{"a", 1}, {"b", 1}});
  seen_.nodes.erase(node_["a"]);
  EXPECT_THAT(Tend(), IsEmpty());
  EXPECT_EQ(table_.Slots().Sum(), 2);
  now_ += seconds(5);
  Tend();
  EXPECT_EQ(table_.Slots().Sum(), 1);
  EXPECT_THAT(table_.TakeMessages(), ElementsAre("host a: its node process has ended"));
  now_ += seconds(1);
  EXPECT_THAT(Next(), ElementsAre(Pair("a", Kind::kLook)));
}

TEST_F(HostTableTest, ANodeThatHasRunForAMinuteBeginsAnewWithFailures) {
  MakeNodes({{"a", 1}, {"b", 1}});
  for (int i = 0; i < 2; ++i) {
    const std::string node = node_["a"];
    now_ += seconds(5);
    seen_.nodes.erase(node);
    Tend();
    now_ += seconds(1);
    Next();
    Look("a");
    Next();
    Join("a");
    seen_.nodes[node_["a"]] = {.pods = "1"};
  }
  now_ += seconds(60);
  Tend();
  now_ += seconds(1);
  seen_.nodes.erase(node_["a"]);
  (void)table_.TakeMessages();
  Tend();
  EXPECT_THAT(table_.TakeMessages(), ElementsAre(HasSubstr("has ended")))
      << "the first failure, not the third";
}

TEST_F(HostTableTest, ANodeOfAnAttemptThatFailedIsDeleted) {
  MakeNodes({{"a", 1}, {"b", 1}});
  seen_.nodes["other"] = {};
  seen_.nodes["going"] = {.deleting = true};
  EXPECT_THAT(Tend(), ElementsAre(NodeWrite{"other", NodeWrite::Kind::kDelete}));
}

TEST_F(HostTableTest, AHostThatOthersCannotReachFailsAndThisMachineHasTheAddressOfTheRun) {
  table_.SetNamed({{"me@a", 1}, {"b", 1}});
  Next();
  for (const char* host : {"me@a", "b"}) {
    Machine machine = MachineOf(steps_.at(host).host, 1, steps_.at(host).index);
    machine.address = "127.0.1.1";
    machine.same_network = host != std::string("b");
    table_.Finish(host, std::move(machine), {}, now_);
  }
  EXPECT_THAT(Next(), ElementsAre(Pair("me@a", Kind::kJoin)));
  EXPECT_EQ(steps_.at("me@a").machine.address, "10.0.0.1");
  EXPECT_THAT(table_.Troubles(), ElementsAre(Pair("b", HasSubstr("loopback"))));
}

}  // namespace
}  // namespace ringmaster::cli
