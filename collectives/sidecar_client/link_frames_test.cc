#include "collectives/sidecar_client/link_frames.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace ringmaster::sidecar_client {
namespace {

using Json = nlohmann::json;

TEST(LinkFramesTest, AWelcomeSetsTheTimesThatItNames) {
  LinkTimes times{250, 10000};
  EXPECT_TRUE(ReadTimes(Json{{"t", "welcome"}}, &times).ok());
  EXPECT_EQ(times.ping_ms, 250);
  EXPECT_EQ(times.fence_ms, 10000);
  EXPECT_TRUE(ReadTimes(Json{{"t", "welcome"}, {"pingMs", 20}}, &times).ok());
  EXPECT_EQ(times.ping_ms, 20);
  EXPECT_EQ(times.fence_ms, 10000);
}

TEST(LinkFramesTest, ATimeOfAWrongTypeIsAnErrorThatNamesIt) {
  LinkTimes times{250, 10000};
  for (const Json& wrong :
       {Json("soon"), Json(-1), Json(1.5), Json(Json::array()), Json(uint64_t{1} << 40)}) {
    const Status status = ReadTimes(Json{{"fenceMs", wrong}}, &times);
    EXPECT_EQ(status.code(), RM_ERR_INVALID) << wrong;
    EXPECT_NE(status.message().find("welcome.fenceMs"), std::string::npos) << status.message();
    EXPECT_EQ(times.fence_ms, 10000);
  }
}

TEST(LinkFramesTest, APongNamesThePingThatItAnswers) {
  uint64_t number = 9;
  EXPECT_TRUE(ReadPong(Json{{"t", "pong"}, {"n", 7}}, &number).ok());
  EXPECT_EQ(number, 7u);
  EXPECT_TRUE(ReadPong(Json{{"t", "pong"}}, &number).ok());
  EXPECT_EQ(number, 0u);
  const Status wrong = ReadPong(Json{{"n", "seven"}}, &number);
  EXPECT_EQ(wrong.code(), RM_ERR_INVALID);
  EXPECT_NE(wrong.message().find("pong.n"), std::string::npos) << wrong.message();
}

}  // namespace
}  // namespace ringmaster::sidecar_client
