#include "common/worker_link/frame.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/fields/fields.h"

namespace ringmaster::worker_link {
namespace {

using nlohmann::json;
using Result = FrameReader::Result;

TEST(FrameReader, ReadsFramesThatArriveByteByByte) {
  std::string bytes = EncodeFrame({{"t", "ping"}, {"n", 7}}) + EncodeFrame({{"t", "enter"}});
  FrameReader reader;
  std::vector<json> frames;
  for (char byte : bytes) {
    reader.Feed(std::string_view(&byte, 1));
    json frame;
    while (reader.Next(&frame) == Result::kFrame) frames.push_back(frame);
  }
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(fields::Integer(frames[0], "n"), 7);
  EXPECT_EQ(frames[1]["t"], "enter");
}

TEST(FrameReader, ReadsSeveralFramesOfOneRead) {
  FrameReader reader;
  reader.Feed(EncodeFrame({{"t", "a"}}) + EncodeFrame({{"t", "b"}}));
  json frame;
  EXPECT_EQ(reader.Next(&frame), Result::kFrame);
  EXPECT_EQ(reader.Next(&frame), Result::kFrame);
  EXPECT_EQ(frame["t"], "b");
  EXPECT_EQ(reader.Next(&frame), Result::kNeedMore);
}

TEST(FrameReader, RefusesAnOversizedFrameBeforeItsBodyArrives) {
  FrameReader reader;
  reader.Feed(std::string("\x01\x00\x00\x01", 4));
  json frame;
  EXPECT_EQ(reader.Next(&frame), Result::kError);
  EXPECT_NE(reader.error().find("16777217"), std::string::npos);
  reader.Feed(EncodeFrame({{"t", "a"}}));
  EXPECT_EQ(reader.Next(&frame), Result::kError) << "an error is final";
}

TEST(FrameReader, RefusesWhatIsNotAnObjectWithAType) {
  for (const char* body : {"", "[]", "{", "{}", "{\"t\":1}", "null", "\xff\xfe"}) {
    std::string bytes = {static_cast<char>(std::string(body).size()), 0, 0, 0};
    FrameReader reader;
    reader.Feed(bytes + body);
    json frame;
    EXPECT_EQ(reader.Next(&frame), Result::kError) << body;
  }
}

TEST(EncodeFrame, ReplacesBytesThatAreNotUtf8) {
  std::string bytes = EncodeFrame({{"t", "x"}, {"message", "\xff"}});
  FrameReader reader;
  reader.Feed(bytes);
  json frame;
  EXPECT_EQ(reader.Next(&frame), Result::kFrame);
}

TEST(FrameReader, EndlessNestingIsRefused) {
  const std::string body =
      R"({"t":"hello","x":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  std::string bytes(4, '\0');
  for (size_t i = 0; i < 4; ++i) bytes[i] = static_cast<char>(body.size() >> (8 * i));
  FrameReader reader;
  reader.Feed(bytes + body);
  json frame;
  EXPECT_EQ(reader.Next(&frame), Result::kError);
}

}  // namespace
}  // namespace ringmaster::worker_link
