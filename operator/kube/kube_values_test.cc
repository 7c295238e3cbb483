#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/base64.h"
#include "operator/kube/dns_names.h"
#include "operator/kube/file.h"
#include "operator/kube/random_hex.h"
#include "operator/kube/rate_limiter.h"
#include "operator/kube/selectors.h"
#include "operator/kube/yaml.h"

namespace ringmaster::kube {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(Base64, RoundTripsEveryLength) {
  for (std::string text : {"", "a", "ab", "abc", "abcd"})
    EXPECT_EQ(DecodeBase64(EncodeBase64(text)), text);
  EXPECT_EQ(EncodeBase64("ab"), "YWI=");
  for (const char* bad : {"a*b", "a-b", "YQ==YQ=="}) EXPECT_FALSE(DecodeBase64(bad).has_value());
  for (const char* loose : {"YWI", "YW\nI=", "YWI=="}) EXPECT_EQ(DecodeBase64(loose), "ab");
}

TEST(Yaml, QuotedScalarsStayStringsAndPlainOnesAreTyped) {
  auto documents =
      YamlToJson("a: '1'\nb: 1\nc: yes\nd: 1.5\ne: ~\nf: \"true\"\ng: 1Gi\n---\n---\nx: []\n");
  ASSERT_TRUE(documents.has_value());
  ASSERT_EQ(documents->size(), 2u);
  EXPECT_EQ((*documents)[0], Json({{"a", "1"},
                                   {"b", 1},
                                   {"c", true},
                                   {"d", 1.5},
                                   {"e", nullptr},
                                   {"f", "true"},
                                   {"g", "1Gi"}}));
}

TEST(Yaml, ErrorsNameTheLine) {
  auto documents = YamlToJson("a: 1\nb: [\n");
  ASSERT_FALSE(documents.has_value());
  EXPECT_THAT(documents.error(), HasSubstr("line 3"));
  EXPECT_THAT(YamlToJson("a: 1\na: 2\n").error(), HasSubstr("already set"));
}

TEST(Yaml, AKeyOfTheMapItselfWinsOverAMergedOneWhereverItStands) {
  auto documents = YamlToJson(
      "base: &base {name: x, image: i}\n"
      "more: &more {name: y, port: 1}\n"
      "after: {<<: *base, name: worker}\n"
      "before: {name: worker, <<: *base}\n"
      "both: {<<: [*base, *more]}\n");
  ASSERT_TRUE(documents.has_value()) << documents.error();
  const Json& map = (*documents)[0];
  EXPECT_EQ(map["after"], Json({{"name", "worker"}, {"image", "i"}}));
  EXPECT_EQ(map["before"], map["after"]);
  EXPECT_EQ(map["both"], Json({{"name", "x"}, {"image", "i"}, {"port", 1}}));
  EXPECT_THAT(YamlToJson("a: &a {b: 1}\nc: {<<: *a, b: 2, b: 3}\n").error(),
              HasSubstr("already set"));
}

TEST(LabelSelector, MatchesAsTheApiServerDoes) {
  Json object = {{"metadata", {{"labels", {{"a", "1"}, {"b", "2"}}}}}};
  struct Case {
    const char* selector;
    bool matches;
  };
  for (Case c : {Case{"", true},
                 {"a=1", true},
                 {"a==1,b=2", true},
                 {"a!=1", false},
                 {"c!=1", true},
                 {"a in (1,3)", true},
                 {"a notin (1)", false},
                 {"c notin (1)", true},
                 {"a", true},
                 {"c", false},
                 {"!c", true},
                 {"!a", false}}) {
    auto selector = LabelSelector::Parse(c.selector);
    ASSERT_TRUE(selector.has_value()) << c.selector;
    EXPECT_EQ(selector->Matches(object), c.matches) << c.selector;
  }
  for (const char* bad : {"a in 1", "=x", "a b", "a in (1"})
    EXPECT_FALSE(LabelSelector::Parse(bad).has_value()) << bad;
}

class RateLimiterTest : public ::testing::Test {
 protected:
  using Clock = RateLimiter::Clock;
  // How long a call now has to wait; nullopt: it is refused.
  std::optional<std::chrono::milliseconds> Wait(std::chrono::milliseconds patience = 1h) {
    const auto wait = limiter_.Reserve(now_, now_ + patience);
    if (!wait) return std::nullopt;
    return std::chrono::round<std::chrono::milliseconds>(*wait);
  }

  Clock::time_point now_{1000s};
  RateLimiter limiter_{10, 2};
};

TEST_F(RateLimiterTest, LetsABurstThroughAndSpacesTheRest) {
  for (const auto wait : {0ms, 0ms, 100ms, 200ms, 300ms}) EXPECT_EQ(Wait(), wait);
  now_ += 150ms;
  EXPECT_EQ(Wait(), 250ms) << "the time that has passed counts";
}

TEST_F(RateLimiterTest, WhatIsNotUsedIsSavedUpToABurst) {
  for (int i = 0; i < 3; ++i) (void)Wait();
  now_ += 1h;
  for (const auto wait : {0ms, 0ms, 100ms}) EXPECT_EQ(Wait(), wait);
}

TEST_F(RateLimiterTest, ACallThatIsRefusedTakesNothing) {
  for (const auto wait : {0ms, 0ms, 100ms}) EXPECT_EQ(Wait(), wait);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Wait(200ms), std::nullopt) << "its turn is its deadline";
  EXPECT_EQ(Wait(201ms), 200ms);
  now_ += 400ms;
  EXPECT_EQ(Wait(0ms), 0ms) << "a call that needs not wait is never refused";
}

TEST(RateLimiter, ZeroIsNoLimit) {
  RateLimiter limiter(0, 1);
  const auto now = RateLimiter::Clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Reserve(now, now)->count(), 0);
}

TEST(YamlTest, AnAliasWithinItselfIsRefused) {
  const auto read = YamlToJson("a: &a [*a]\n");
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().find("nested deeper than"), std::string::npos) << read.error();
}

TEST(YamlTest, AliasesThatStandForMoreThanFitsAreRefused) {
  std::string text = "x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*x" + std::to_string(i - 1), name = "x" + std::to_string(i);
    text += name + ": &" + name + " [" + before;
    for (int j = 1; j < 10; ++j) text += ", " + before;
    text += "]\n";
  }
  const auto read = YamlToJson(text);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().find("with its aliases"), std::string::npos) << read.error();
}

TEST(YamlTest, EndlessNestingAndLengthAreRefused) {
  EXPECT_FALSE(YamlToJson(std::string(100, '[') + std::string(100, ']')).has_value());
  EXPECT_FALSE(YamlToJson(std::string(200'000, '[')).has_value());
  EXPECT_FALSE(YamlToJson(std::string(5u << 20, ' ')).has_value());
}

// yaml-cpp would read such a text for ever, as one empty document after another.
TEST(YamlTest, ATokenThatBeginsNothingEndsTheReading) {
  for (const char* text : {", :a]\nb: {<<: {c: 0x1F}\n", ",", "]", "a: 1\n--- }\n", ":"}) {
    (void)YamlToJson(text);
  }
  EXPECT_FALSE(YamlToJson(", :a]\nb: {<<: {c: 0x1F}\n").has_value());
}

TEST(DnsNames, ALabelIsANameWithoutDots) {
  for (const char* good : {"a", "digits-worker-0", "0a"}) EXPECT_TRUE(IsDnsLabel(good)) << good;
  for (const char* bad : {"", "-a", "a-", "A", "a_b", "a/b"}) {
    EXPECT_FALSE(IsDnsName(bad)) << bad;
    EXPECT_FALSE(IsDnsLabel(bad)) << bad;
  }
  EXPECT_TRUE(IsDnsName("ringmaster.dev"));
  EXPECT_FALSE(IsDnsLabel("ringmaster.dev"));
  EXPECT_TRUE(IsDnsLabel(std::string(63, 'a')));
  EXPECT_FALSE(IsDnsLabel(std::string(64, 'a')));
  EXPECT_TRUE(IsDnsName(std::string(253, 'a')));
  EXPECT_FALSE(IsDnsName(std::string(254, 'a')));
}

TEST(RandomHexTest, HasTwoDigitsForEachByteAndIsAnotherEachTime) {
  const std::string text = RandomHex(16);
  EXPECT_EQ(text.size(), 32U);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(text, RandomHex(16));
}

TEST(FileTest, AFileWithoutEndIsRefused) {
  const auto text = ReadFile("/dev/zero");
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error(), std::errc::file_too_large);
}

}  // namespace
}  // namespace ringmaster::kube
