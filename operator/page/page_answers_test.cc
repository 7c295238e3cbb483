// The answers to what the page asks, over a source with one log.
#include "operator/page/page_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/until.h"

namespace ringmaster::page {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::Not;
using testing::StartsWith;

constexpr std::size_t kMiB = 1 << 20;

// Each of its lines has 1 KiB; the first one says "line 0".
class OneLog final : public Source {
 public:
  explicit OneLog(int lines, std::string label = "") : lines_(lines), label_(std::move(label)) {}

  static std::string Line(int number, const std::string& label = "") {
    std::string line = label + "line " + std::to_string(number) + " ";
    line.resize(1023, '.');
    return line + "\n";
  }

  Answer<std::vector<json>> Jobs() override { return {}; }
  Answer<inspection::Inspection> Inspect(json) override { return {}; }
  json History(const inspection::Inspection&) override { return nullptr; }
  Answer<void> Log(const std::string&, const std::string&, int,
                   const std::function<bool(std::string_view)>& on_text, std::stop_token) override {
    for (int i = 0; i < lines_; ++i)
      if (!on_text(Line(i, label_))) break;
    return {};
  }

 private:
  const int lines_;
  const std::string label_;
};

using Query = std::map<std::string, std::string>;

// The text of the answer to a question for a log.
std::string LogOf(std::shared_ptr<Source> source, Query query) {
  Observatory observatory(std::move(source), {.interval = std::chrono::hours(1)});
  http::Request request;
  request.path = "/api/log";
  request.query = std::move(query);
  const auto response =
      PageAnswer(&observatory, request, [](const http::Request&) { return Admission{}; });
  std::string text;
  EXPECT_TRUE(support::Until([&] {
    const auto more = response.next();
    if (more) text += *more;
    return !more.has_value();
  }));
  return text;
}

TEST(PageAnswersTest, OfALongLogTheEndIsShownAndThatTheBeginningIsNot) {
  const std::string text = LogOf(std::make_shared<OneLog>(3000), {{"lines", "500"}});
  EXPECT_THAT(text, EndsWith(OneLog::Line(2998) + OneLog::Line(2999)));
  EXPECT_LT(text.size(), kMiB + 200);
  EXPECT_GT(text.size(), kMiB - 2048);
  EXPECT_THAT(text, StartsWith("... (what came before is left out:"));
  EXPECT_THAT(text.substr(text.find('\n') + 1), StartsWith("line ")) << "it begins with a line";
}

TEST(PageAnswersTest, OfOneWorkerTooThatItsLogBeganEarlierIsSaid) {
  const std::string text =
      LogOf(std::make_shared<OneLog>(3000, "[1] "), {{"lines", "5000"}, {"worker", "1"}});
  EXPECT_THAT(text, StartsWith("... (what came before is left out:"));
  EXPECT_THAT(text, EndsWith(OneLog::Line(2999, "[1] ")));
}

TEST(PageAnswersTest, OfAShortLogNothingIsSaidToBeLeftOut) {
  const Query all = {{"lines", "500"}}, one = {{"lines", "500"}, {"worker", "1"}};
  EXPECT_EQ(LogOf(std::make_shared<OneLog>(2), all), OneLog::Line(0) + OneLog::Line(1));
  EXPECT_EQ(LogOf(std::make_shared<OneLog>(2, "[1] "), one),
            OneLog::Line(0, "[1] ") + OneLog::Line(1, "[1] "));
  EXPECT_THAT(LogOf(std::make_shared<OneLog>(1024), all), Not(StartsWith("...")))
      << "it is as long as what is kept";
}

}  // namespace
}  // namespace ringmaster::page
