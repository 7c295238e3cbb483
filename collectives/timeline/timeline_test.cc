#include "collectives/timeline/timeline.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/temp_dir.h"

namespace ringmaster::timeline {
namespace {

using std::chrono::microseconds;
using ::testing::HasSubstr;

nlohmann::json Parsed(const std::filesystem::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, false);
}

// The events that are not introductions.
std::vector<nlohmann::json> EventsOf(const std::filesystem::path& path) {
  std::vector<nlohmann::json> events;
  for (const auto& event : Parsed(path)) {
    if (event["ph"] != "M") events.push_back(event);
  }
  return events;
}

class TimelineTest : public ::testing::Test {
 protected:
  std::string In(const std::string& name) const { return temporary_.path() / name; }
  void Record(Row row, const char* what, const std::string& name, microseconds took) {
    timeline_.Record([&](Event* event) {
      const auto now = Clock::now();
      *event = {row, what, name, now - took, now, {{{"bytes", 12}}}};
    });
  }

  support::TempDir temporary_;
  Timeline timeline_;
};

TEST_F(TimelineTest, WhatIsRecordedIsInTheFileWithRowsForTensors) {
  const double before =
      std::chrono::duration<double, std::micro>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  ASSERT_TRUE(timeline_.Start(In("t.json"), false, {2, "worker \"two\"", "uid"}).ok());
  Record(Row::kTensor, "ALLREDUCE", "grad.\xff", microseconds(500));
  Record(Row::kTensor, "ALLREDUCE", "bias", microseconds(0));
  Record(Row::kTensor, "NEGOTIATE_ALLREDUCE", "grad.\xff", microseconds(500));
  Record(Row::kViews, "view", "1.2", microseconds(0));
  ASSERT_TRUE(timeline_.Stop().ok());

  const auto all = Parsed(In("t.rank2.json"));
  ASSERT_TRUE(all.is_array()) << "not whole";
  EXPECT_EQ(all[0]["args"]["name"], "rank 2: worker \"two\"");
  EXPECT_EQ(all[0]["args"]["job"], "uid");
  const auto events = EventsOf(In("t.rank2.json"));
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["name"], "ALLREDUCE");
  EXPECT_EQ(events[0]["ph"], "X");
  EXPECT_NEAR(events[0]["dur"].get<double>(), 500, 1);
  EXPECT_GE(events[0]["ts"].get<double>() + 500, before);
  EXPECT_EQ(events[0]["args"]["bytes"], 12);
  EXPECT_EQ(events[0]["tid"], events[2]["tid"]) << "a tensor has one row";
  EXPECT_NE(events[0]["tid"], events[1]["tid"]);
  EXPECT_EQ(events[1]["ph"], "i");
  EXPECT_EQ(events[3]["name"], "view 1.2");
}

TEST_F(TimelineTest, NothingIsRecordedBeforeTheStartAndAfterTheStop) {
  Record(Row::kSteps, "before", "", microseconds(1));
  ASSERT_TRUE(timeline_.Start(In("a.json"), false, {}).ok());
  ASSERT_TRUE(timeline_.Stop().ok());
  Record(Row::kSteps, "between", "", microseconds(1));
  ASSERT_TRUE(timeline_.Start(In("b.json"), false, {}).ok());
  Record(Row::kSteps, "during", "", microseconds(1));
  ASSERT_TRUE(timeline_.Stop().ok());
  EXPECT_TRUE(timeline_.Stop().ok()) << "a second stop has nothing to do";
  EXPECT_TRUE(EventsOf(In("a.json")).empty());
  ASSERT_EQ(EventsOf(In("b.json")).size(), 1u);
  EXPECT_EQ(EventsOf(In("b.json"))[0]["name"], "during");
}

std::vector<nlohmann::json> RecentOf(const Timeline& timeline, const RecentRequest& request) {
  std::string text = "[0";
  for (const std::string& piece : timeline.Recent(request)) text += piece;
  std::vector<nlohmann::json> events;
  for (const auto& event : nlohmann::json::parse(text + "]", nullptr, false)) {
    if (event.is_object() && event["ph"] != "M") events.push_back(event);
  }
  return events;
}

TEST_F(TimelineTest, TheNewestEventsAreInMemoryWithAFileAndWithout) {
  Record(Row::kSteps, "before", "", microseconds(1));
  EXPECT_FALSE(timeline_.on());
  timeline_.KeepRecent();
  EXPECT_TRUE(timeline_.on());
  Record(Row::kSteps, "step", "1", microseconds(1));
  ASSERT_TRUE(timeline_.Start(In("t.json"), false, {}).ok());
  Record(Row::kTensor, "ALLREDUCE", "grad", microseconds(1));
  ASSERT_TRUE(timeline_.Stop().ok());
  Record(Row::kSteps, "step", "2", microseconds(1));

  const auto recent = RecentOf(timeline_, {.process = 7, .span = std::chrono::hours(1)});
  ASSERT_EQ(recent.size(), 3u);
  EXPECT_EQ(recent[0]["name"], "step 2");
  EXPECT_EQ(recent[0]["pid"], 7);
  EXPECT_EQ(recent[1]["name"], "ALLREDUCE");
  EXPECT_EQ(recent[2]["name"], "step 1");
  const auto written = EventsOf(In("t.json"));
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0]["args"], recent[1]["args"]);
}

TEST_F(TimelineTest, OfTheNewestEventsAsManyAreToldAsWasAskedFor) {
  timeline_.KeepRecent();
  for (int i = 0; i < 2000; ++i) {
    Record(i % 2 == 0 ? Row::kTensor : Row::kSteps, "event", "t" + std::to_string(i),
           microseconds(1));
  }
  const RecentRequest all = {.span = std::chrono::hours(1)};
  EXPECT_EQ(RecentOf(timeline_, all).size(), 2000u);
  EXPECT_GT(timeline_.Recent(all).size(), 1u) << "in pieces";
  RecentRequest no_tensors = all, little = all, none = all;
  no_tensors.tensors = false;
  EXPECT_EQ(RecentOf(timeline_, no_tensors).size(), 1000u);
  little.most_bytes = 20'000;
  const auto newest = RecentOf(timeline_, little);
  EXPECT_LT(newest.size(), 200u);
  ASSERT_FALSE(newest.empty());
  EXPECT_EQ(newest[0]["name"], "event t1999");
  none.span = std::chrono::milliseconds(-1000);
  EXPECT_TRUE(RecentOf(timeline_, none).empty());
}

TEST_F(TimelineTest, AFileThatCannotBeIsNamed) {
  const Status missing = timeline_.Start(In("no/such/folder/t.json"), false, {});
  EXPECT_EQ(missing.code(), RM_ERR_INVALID);
  EXPECT_THAT(missing.message(), HasSubstr("no/such/folder/t.json"));
  ASSERT_TRUE(timeline_.Start(In("t.json"), false, {}).ok());
  EXPECT_THAT(timeline_.Start(In("u.json"), false, {}).message(), HasSubstr("already"));
}

TEST_F(TimelineTest, AWorkerThatComesLaterWritesOverNoOthersFile) {
  for (const char* expected : {"a.b/t.rank1.json", "a.b/t.rank1-2.json", "a.b/t.rank1-3.json"}) {
    std::filesystem::create_directories(In("a.b"));
    ASSERT_TRUE(timeline_.Start(In("a.b/t.json"), true, {1, "", ""}).ok());
    ASSERT_TRUE(timeline_.Stop().ok());
    EXPECT_TRUE(std::filesystem::exists(In(expected))) << expected;
  }
  ASSERT_TRUE(timeline_.Start(In("a.b/t"), false, {1, "", ""}).ok());
  ASSERT_TRUE(timeline_.Stop().ok());
  EXPECT_TRUE(std::filesystem::exists(In("a.b/t.rank1")));
}

TEST_F(TimelineTest, NamesWithoutEndShareARow) {
  ASSERT_TRUE(timeline_.Start(In("t.json"), false, {}).ok());
  for (int i = 0; i < 1100; ++i) {
    Record(Row::kTensor, "ALLREDUCE", "noname." + std::to_string(i), microseconds(1));
  }
  ASSERT_TRUE(timeline_.Stop().ok());
  const auto events = EventsOf(In("t.json"));
  ASSERT_EQ(events.size(), 1100u);
  EXPECT_NE(events[998]["tid"], events[999]["tid"]);
  EXPECT_EQ(events[1001]["tid"], events[1099]["tid"]);
  EXPECT_EQ(events[1099]["args"]["tensor"], "noname.1099");
}

TEST(EventQueueTest, WhatDoesNotFitIsDroppedAndCounted) {
  EventQueue queue(4);
  const auto push = [&](const char* what) {
    queue.Push([&](Event* event) { event->what = what; });
  };
  for (const char* what : {"a", "b", "c", "d", "e", "f"}) push(what);
  EXPECT_EQ(queue.TakeDropped(), 2u);
  EXPECT_EQ(queue.TakeDropped(), 0u);
  std::string popped;
  const auto pop = [&] { queue.Pop([&](const Event& event) { popped += event.what; }); };
  pop();
  push("g");
  pop();
  EXPECT_EQ(popped, "abcdg");
}

TEST_F(TimelineTest, WhatDoesNotFitOnTheDiskIsSaid) {
  ASSERT_TRUE(timeline_.Start("/dev/full", false, {}).ok());
  Record(Row::kSteps, "step", "1", microseconds(1));
  const Status stopped = timeline_.Stop();
  EXPECT_EQ(stopped.code(), RM_ERR_INTERNAL);
  EXPECT_THAT(stopped.message(), HasSubstr("/dev/full"));
}

// A pipe whose reader reads nothing: what is written to it waits for ever.
TEST_F(TimelineTest, AFileThatTakesNothingIsGivenUpAndNamedAndTheNextOneIsWhole) {
  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  const int reader = open(In("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(timeline_.Start(In("pipe"), false, {}).ok());
  for (int i = 0; i < 2000; ++i) Record(Row::kSteps, "step", "1", microseconds(1));
  const Status stopped = timeline_.Stop(Clock::now() + std::chrono::milliseconds(300));
  EXPECT_EQ(stopped.code(), RM_ERR_INTERNAL);
  EXPECT_THAT(stopped.message(), HasSubstr(In("pipe")));

  ASSERT_TRUE(timeline_.Start(In("t.json"), false, {}).ok());
  Record(Row::kSteps, "step", "2", microseconds(1));
  ASSERT_TRUE(timeline_.Stop().ok());
  EXPECT_EQ(EventsOf(In("t.json")).size(), 1u);

  fcntl(reader, F_SETFL, 0);
  std::vector<char> read_now(1 << 16);
  while (read(reader, read_now.data(), read_now.size()) > 0) {
  }
  close(reader);  // the writer has come to the file's end
}

// A pipe without a reader: who opens it waits for ever, as with a file system that is gone.
TEST_F(TimelineTest, AFileThatCannotBeOpenedInTimeIsGivenUpAndNamedAndTheNextOneIsWhole) {
  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  Timeline timeline(std::chrono::milliseconds(200));
  const Status started = timeline.Start(In("pipe"), false, {});
  EXPECT_EQ(started.code(), RM_ERR_INVALID);
  EXPECT_THAT(started.message(), HasSubstr(In("pipe") + " can't be opened"));
  EXPECT_TRUE(timeline.Stop().ok());

  ASSERT_TRUE(timeline.Start(In("t.json"), false, {}).ok());
  ASSERT_TRUE(timeline.Stop().ok());
  EXPECT_TRUE(Parsed(In("t.json")).is_array());

  // The thread that was left behind is answered at last. It writes nothing.
  const int reader = open(In("pipe").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  char byte;
  EXPECT_EQ(read(reader, &byte, 1), 0);
  close(reader);
}

// For tsan: one thread records while others start and stop.
TEST_F(TimelineTest, RecordingGoesOnWhileItIsStartedAndStopped) {
  std::jthread recorder([&](std::stop_token stop) {
    while (!stop.stop_requested()) Record(Row::kTensor, "ALLREDUCE", "t", microseconds(1));
  });
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(timeline_.Start(In("t.json"), false, {}).ok());
    ASSERT_TRUE(timeline_.Stop().ok());
    EXPECT_TRUE(Parsed(In("t.json")).is_array());
  }
}

}  // namespace
}  // namespace ringmaster::timeline
