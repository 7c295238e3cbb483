#include "common/logging/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::logging {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Json = nlohmann::json;

// What a program with these options writes for the line.
std::string Written(const Options& options, const std::string& line) {
  EXPECT_TRUE(Begin(options));
  testing::internal::CaptureStderr();
  logging::Warn("{}", line);
  logging::Debug("not on this level");
  logging::Flush();
  return testing::internal::GetCapturedStderr();
}

TEST(LogLine, ValuesMayHaveBlanksAndQuotesAndNothingIsLost) {
  struct Case {
    std::string text, message;
    Fields fields;
  };
  const Case cases[] = {
      {"operator stops", "operator stops", {}},
      {"", "", {}},
      {"pod created job=a/b pod=b-0", "pod created", {{"job", "a/b"}, {"pod", "b-0"}}},
      {"x why=\"no room\" n=4", "x", {{"why", "no room"}, {"n", "4"}}},
      {"x why=\"pods \"p\" not found\" n=4", "x", {{"why", "pods \"p\" not found"}, {"n", "4"}}},
      {R"(x why="a \"b\" c\\" n=)", "x", {{"why", "a \"b\" c\\"}, {"n", ""}}},
      {"x why=no room in it n=4", "x", {{"why", "no room in it"}, {"n", "4"}}},
      {"x why=\"no end", "x", {{"why", "\"no end"}}},
      {"job=a/b", "", {{"job", "a/b"}}},
      {"2 + 2 = 4 and a==b", "2 + 2 = 4 and", {{"a", "=b"}}},
  };
  for (const Case& c : cases) {
    const Line line = ParseLine(c.text);
    EXPECT_EQ(line.message, c.message) << c.text;
    EXPECT_EQ(line.fields, c.fields) << c.text;
  }
}

TEST(LogLine, AQuotedValueComesBackAsItWas) {
  for (const std::string text :
       {"plain", "two words", "", "say \"hi\"", "back\\slash and", "a=b c=d", "\"", "ends\\"}) {
    const Line line = ParseLine("message key=" + Value(text) + " next=1");
    EXPECT_THAT(line.fields, ElementsAre(Pair("key", text), Pair("next", "1"))) << text;
  }
}

TEST(Log, AJsonLineIsAnObjectWithMessageAndFields) {
  const std::string text = Written({.format = "json", .fields = {{"pod", "digits-worker-0"}}},
                                   "view installed epoch=1.10 ranks=4 msg=twice why=\"a b\"");
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  const Json json = Json::parse(text);
  EXPECT_EQ(json["msg"], "view installed");
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(json["pod"], "digits-worker-0");
  EXPECT_EQ(json["epoch"], "1.10") << "no number: 1.10 is not 1.1";
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["why"], "a b");
  EXPECT_EQ(json["msg_"], "twice");
  EXPECT_THAT(json["ts"].get<std::string>(), testing::MatchesRegex("20..-..-..T..:..:..\\....Z"));
}

TEST(Log, BytesThatAreNoTextAndLineBreaksDoNotBreakALine) {
  const std::string json = Written({.format = "json"}, "bad\xff why=one\ntwo");
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 1) << json;
  EXPECT_EQ(Json::parse(json)["why"], "one\ntwo");
  const std::string text = Written({}, "bad why=one\ntwo");
  EXPECT_THAT(text, HasSubstr(" warning bad why=one two\n"));
}

TEST(Log, AWrongFormatOrLevelIsRefusedWithWhatIsAllowed) {
  EXPECT_EQ(Begin({.format = "xml"}).error(), "log format \"xml\": allowed are text, json");
  EXPECT_EQ(Begin({.level = "loud"}).error(),
            "log level \"loud\": allowed are debug, info, warning, error");
}

TEST(Log, ATimeIsUtcWithMilliseconds) {
  EXPECT_EQ(FormatTime(std::chrono::system_clock::time_point(std::chrono::milliseconds(1'007))),
            "1970-01-01T00:00:01.007Z");
}

}  // namespace
}  // namespace ringmaster::logging
