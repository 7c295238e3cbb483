#include "operator/cli/run_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kOwn[] = "10.0.0.1";  // of this machine, on the network of the others

bool IsOwn(const std::string& address) {
  return address == kOwn || address == "127.0.0.1" || address == "127.0.1.1";
}

Machine Other(const std::string& name, const std::string& address,
              const std::string& seen_from = kOwn) {
  return {.host = {name, 1}, .address = address, .seen_from = seen_from};
}

// This machine as another user has it: Debian's /etc/hosts gives its name an address of its own.
Machine Here(const std::string& address = "127.0.1.1", const std::string& seen_from = "127.0.0.1") {
  Machine machine = Other("me@a", address, seen_from);
  machine.same_network = true;
  return machine;
}

template <class T>
std::string Refusal(const Outcome<T>& outcome) {
  return outcome ? "none" : outcome.error().message;
}

class RunAddressTest : public ::testing::Test {
 protected:
  Outcome<std::string> Choose(const std::string& wanted = "") {
    std::vector<Machine*> all;
    for (Machine& machine : machines_) all.push_back(&machine);
    return ChooseAddress(wanted, all, IsOwn);
  }
  std::vector<Machine> machines_;
};

TEST_F(RunAddressTest, ThisMachineUnderAnotherUserHasNoLoopbackAddressWhereOthersAre) {
  const Machine b = Other("me@b", "10.0.0.2");
  Machine here[] = {Here(), Here("::1", "::1"), Here("10.0.0.1", "10.0.0.1"), Here("", "")};
  for (Machine& a : here) {
    for (const auto& order : {std::vector{a, b}, std::vector{b, a}}) {
      machines_ = order;
      EXPECT_EQ(Choose().value_or(""), kOwn) << a.address;
      EXPECT_EQ(Choose(kOwn).value_or(""), kOwn) << a.address;
    }
    ASSERT_TRUE(GiveAddress(kOwn, &a));
    EXPECT_EQ(a.address, kOwn);
  }
}

TEST_F(RunAddressTest, ARunThatStaysOnThisMachineListensToNobodyElse) {
  machines_ = {Here(), {.host = {"localhost", 1}, .here = true}};
  EXPECT_EQ(Choose().value_or(""), "127.0.0.1");
  ASSERT_TRUE(GiveAddress("127.0.0.1", &machines_[0]));
  EXPECT_EQ(machines_[0].address, "127.0.0.1");
}

TEST_F(RunAddressTest, WhereNoOtherMachineSeesAnAddressOfThisOneThePersonIsAskedForIt) {
  for (const char* seen : {"127.0.0.1", "::1", "::ffff:127.0.0.1", "192.0.2.9", "UNKNOWN"}) {
    machines_ = {Here(), Other("b", "10.0.0.2", seen)};
    const auto chosen = Choose();
    ASSERT_FALSE(chosen) << seen;
    EXPECT_EQ(chosen.error().code, ExitCode::kMachineLacks);
    EXPECT_THAT(Refusal(chosen), AllOf(HasSubstr("host b"), HasSubstr("--address")));
    EXPECT_EQ(Choose(kOwn).value_or(""), kOwn) << seen;
    machines_.push_back(Other("c", "10.0.0.3"));
    EXPECT_EQ(Choose().has_value(), IsLoopback(seen)) << "b is behind a tunnel, but c sees it";
  }
}

TEST_F(RunAddressTest, AnAddressThatThePersonNamesIsOneThatTheOthersReach) {
  machines_ = {Other("b", "10.0.0.2")};
  EXPECT_THAT(Refusal(Choose("127.0.0.1")), HasSubstr("loopback address, by which host b"));
  EXPECT_THAT(Refusal(Choose("192.0.2.9")), HasSubstr("no IPv4 address of this machine"));
  machines_ = {Here()};
  EXPECT_EQ(Choose("127.0.0.1").value_or(""), "127.0.0.1");
}

TEST_F(RunAddressTest, AnotherMachineThatCannotBeReachedOrCannotReachTheRunIsRefused) {
  for (const char* address : {"127.0.0.1", "::1", "::ffff:127.0.1.1"}) {
    Machine b = Other("b", address);
    EXPECT_THAT(Refusal(GiveAddress(kOwn, &b)), HasSubstr(address));
  }
  Machine b = Other("b", "10.0.0.2");
  EXPECT_THAT(Refusal(GiveAddress("127.0.0.1", &b)), HasSubstr("--address"));
  ASSERT_TRUE(GiveAddress(kOwn, &b));
  EXPECT_EQ(b.address, "10.0.0.2");
}

}  // namespace
}  // namespace ringmaster::cli
