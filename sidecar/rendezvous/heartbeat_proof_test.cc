#include "sidecar/rendezvous/heartbeat_proof.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringmaster::rendezvous {
namespace {

const std::string kKey(32, 'k'), kOtherKey(32, 'o');
const std::string kNonce(64, 'a'), kSecond(64, 'b');
const HeartbeatHello kHello{"job", "watcher", kNonce};
const HeartbeatNews kNews{(uint64_t{1} << 40) + 7, 11};

HeartbeatSession Session(const std::string& key = kKey, const HeartbeatHello& hello = kHello,
                         const std::string& watched = "watched",
                         const std::string& nonce = kSecond) {
  return {key, hello, watched, nonce};
}

TEST(HeartbeatProofTest, BothEndsReadWhatTheOtherHasWritten) {
  const HeartbeatSession session = Session();
  EXPECT_TRUE(session.IsProof(session.Proof()));
  EXPECT_TRUE(session.IsBeat(3, session.Beat(3)));
  EXPECT_EQ(session.ReadEcho(3, session.Echo(3, kNews)), kNews);
  EXPECT_EQ(session.Beat(0).size(), session.size());
  EXPECT_EQ(session.Echo(0, kNews).size(), session.size());
}

TEST(HeartbeatProofTest, WhatIsProvenOnOneConnectionIsWorthNothingOnAnother) {
  const HeartbeatSession session = Session();
  const HeartbeatSession others[] = {
      Session(kOtherKey),
      Session(kKey, {"another job", "watcher", kNonce}),
      Session(kKey, {"job", "another watcher", kNonce}),
      Session(kKey, {"job", "watcher", kSecond}),
      Session(kKey, kHello, "another watched"),
      Session(kKey, kHello, "watched", kNonce),
  };
  for (const HeartbeatSession& other : others) {
    EXPECT_FALSE(other.IsProof(session.Proof()));
    EXPECT_FALSE(other.IsBeat(0, session.Beat(0)));
    EXPECT_FALSE(other.ReadEcho(0, session.Echo(0, kNews)));
  }
}

TEST(HeartbeatProofTest, NoneIsTakenTwiceOrOutOfTurnOrChanged) {
  const HeartbeatSession session = Session();
  EXPECT_FALSE(session.IsBeat(1, session.Beat(0)));
  EXPECT_FALSE(session.ReadEcho(1, session.Echo(0, kNews)));
  const std::string echo = session.Echo(5, kNews);
  for (size_t i = 0; i < echo.size(); ++i) {
    std::string changed = echo;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(session.ReadEcho(5, changed)) << i;
  }
  EXPECT_FALSE(session.ReadEcho(5, echo.substr(0, 16))) << "of a version without proofs";
  EXPECT_FALSE(session.ReadEcho(5, session.Beat(5))) << "sent back";
}

TEST(HeartbeatProofTest, WithoutAKeyTheyAreAsLongAsOnesOfAVersionWithoutProofs) {
  const HeartbeatSession none;
  EXPECT_EQ(none.size(), 16u);
  EXPECT_EQ(none.Beat(1), std::string(16, '\0'));
  EXPECT_EQ(none.ReadEcho(9, none.Echo(0, kNews)), kNews);
  EXPECT_FALSE(none.IsProof(""));
}

TEST(HeartbeatProofTest, LinesAreReadAsTheyWereWritten) {
  const auto hello = ReadHello(WriteHello(kHello));
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->job, "job");
  EXPECT_EQ(hello->watcher, "watcher");
  EXPECT_EQ(hello->nonce, kNonce);
  const std::string proof = Session().Proof();
  const auto welcome = ReadWelcome(WriteWelcome({"watched", kSecond, proof}));
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->watched, "watched");
  EXPECT_EQ(welcome->nonce, kSecond);
  EXPECT_EQ(welcome->proof, proof);
  EXPECT_LT(WriteWelcome(*welcome).size(), kMaxHeartbeatLine);
}

TEST(HeartbeatProofTest, LinesOfAVersionWithoutProofsAskForNoneAndHaveNone) {
  EXPECT_EQ(WriteHello({"job", "watcher", ""}), "RMHB2 job watcher\n");
  EXPECT_EQ(ReadHello("RMHB2 job watcher")->nonce, "");
  EXPECT_EQ(WriteWelcome({"watched", "", ""}), "RMHB2 watched\n");
  EXPECT_EQ(ReadWelcome("RMHB2 watched")->proof, "");
}

TEST(HeartbeatProofTest, OtherLinesAreNone) {
  const std::vector<std::string> no_hello = {"", "RMHB1 job watcher", "RMHB2",
                                             "RMHB2 job watcher short"};
  for (const std::string& line : no_hello) EXPECT_FALSE(ReadHello(line)) << line;
  const std::vector<std::string> no_welcome = {
      "", "HTTP/1.0 400", "RMHB2", "RMHB2 watched " + kNonce,
      "RMHB2 watched " + kNonce + " " + std::string(64, 'Z')};
  for (const std::string& line : no_welcome) EXPECT_FALSE(ReadWelcome(line)) << line;
}

}  // namespace
}  // namespace ringmaster::rendezvous
