#include "collectives/transport/sealed_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include "collectives/transport/liveness_monitor.h"
#include "collectives/transport/unique_fd.h"
#include "collectives/transport/whole_frame.h"

namespace ringmaster::transport {
namespace {

class SealedStreamTest : public ::testing::Test {
 protected:
  SealedStreamTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    here_ = UniqueFd(fds[0]);
    there_ = UniqueFd(fds[1]);
  }

  static StreamKeys KeysOf(uint8_t out, uint8_t in) {
    StreamKeys keys;
    keys.out.fill(out);
    keys.in.fill(in);
    return keys;
  }
  ssize_t Send(const std::string& text) {
    const iovec part{const_cast<char*>(text.data()), text.size()};
    return sender_.Send(here_.get(), {&part, 1});
  }
  std::string Receive(size_t room = 1000) {
    std::string text(room, '\0');
    const ssize_t got = receiver_.Receive(there_.get(), text.data(), room);
    if (got < 0) return errno == EAGAIN ? "nothing yet" : errno == EBADMSG ? "forged" : "error";
    return text.substr(0, static_cast<size_t>(got));
  }
  // Takes what is on its way, as somebody between the two ends would.
  std::string Intercept() {
    std::string bytes(100000, '\0');
    const ssize_t got = recv(there_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return bytes.substr(0, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  void Inject(const std::string& bytes) {
    ASSERT_EQ(write(here_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }

  UniqueFd here_, there_;
  SealedStream sender_{KeysOf(1, 2)}, receiver_{KeysOf(2, 1)};
};

TEST_F(SealedStreamTest, WhatIsSentArrivesInPiecesOfAnySize) {
  EXPECT_EQ(Receive(), "nothing yet");
  EXPECT_EQ(Send("the gradients"), 13);
  EXPECT_EQ(Receive(4), "the ");
  EXPECT_EQ(Send(" of a step"), 10);
  EXPECT_EQ(Receive(), "gradients");
  EXPECT_EQ(Receive(), " of a step");
  EXPECT_EQ(Receive(), "nothing yet");
  here_.Reset();
  EXPECT_EQ(Receive(), "") << "the end of the connection";
}

TEST_F(SealedStreamTest, APeekTakesNothing) {
  EXPECT_EQ(Send("header and payload"), 18);
  char seen[6];
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(receiver_.Peek(there_.get(), seen, sizeof(seen)), 6);
    EXPECT_EQ(std::string(seen, 6), "header");
  }
  EXPECT_EQ(Receive(), "header and payload");
}

TEST_F(SealedStreamTest, NobodyBetweenTheTwoReadsIt) {
  EXPECT_EQ(Send("the gradients"), 13);
  const std::string first = Intercept();
  EXPECT_EQ(Send("the gradients"), 13);
  const std::string second = Intercept();
  EXPECT_EQ(first.find("gradients"), std::string::npos);
  EXPECT_EQ(first.size(), second.size());
  EXPECT_NE(first, second) << "equal texts don't look equal";
}

TEST_F(SealedStreamTest, AnyChangedByteIsFound) {
  EXPECT_EQ(Send("the gradients"), 13);
  const std::string record = Intercept();
  for (size_t i = 0; i < record.size(); ++i) {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    const UniqueFd from(fds[0]), to(fds[1]);
    std::string changed = record;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    ASSERT_GT(write(from.get(), changed.data(), changed.size()), 0);
    shutdown(from.get(), SHUT_WR);
    SealedStream receiver(KeysOf(2, 1));
    char text[100];
    const ssize_t got = receiver.Receive(to.get(), text, sizeof(text));
    EXPECT_LE(got, 0) << "byte " << i;
  }
}

TEST_F(SealedStreamTest, ARecordThatIsRepeatedOrLeftOutIsFound) {
  EXPECT_EQ(Send("one"), 3);
  const std::string one = Intercept();
  EXPECT_EQ(Send("two"), 3);
  const std::string two = Intercept();
  Inject(one);
  EXPECT_EQ(Receive(), "one");
  Inject(one);
  EXPECT_EQ(Receive(), "forged");
  SealedStream fresh(KeysOf(2, 1));
  Inject(two);
  char text[10];
  EXPECT_EQ(fresh.Receive(there_.get(), text, sizeof(text)), -1);
}

TEST_F(SealedStreamTest, WhatOneSaysIsNotTakenForTheOthers) {
  EXPECT_EQ(Send("one"), 3);
  const std::string record = Intercept();
  ASSERT_EQ(write(there_.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));
  char text[10];
  EXPECT_EQ(sender_.Receive(here_.get(), text, sizeof(text)), -1);
  EXPECT_EQ(errno, EBADMSG);
}

TEST_F(SealedStreamTest, ALengthThatCannotBeIsRefusedAtOnce) {
  for (uint32_t length : {0u, 16u, (32u << 10) + 17, 0xffffffffu}) {
    Inject(std::string(reinterpret_cast<const char*>(&length), 4));
    EXPECT_EQ(Receive(), "forged") << length;
    (void)Intercept();
    receiver_.~SealedStream();
    new (&receiver_) SealedStream(KeysOf(2, 1));
  }
}

// The socket takes little at a time, the frame is longer than a record, and the pieces have any
// size.
TEST_F(SealedStreamTest, AFullSocketIsWaitedForAndNothingIsLost) {
  const int small = 4096;
  setsockopt(here_.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  std::mt19937 random(1);
  std::string text(300000, '\0'), got;
  for (char& c : text) c = static_cast<char>(random());
  size_t sent = 0;
  int full = 0;
  while (got.size() < text.size()) {
    const iovec parts[] = {{text.data() + sent, std::min<size_t>(32, text.size() - sent)},
                           {text.data() + std::min(sent + 32, text.size()),
                            text.size() - std::min(sent + 32, text.size())}};
    if (sent < text.size()) {
      const ssize_t taken = sender_.Send(here_.get(), parts);
      if (taken < 0) {
        ASSERT_EQ(errno, EAGAIN);
        ++full;
      } else {
        sent += static_cast<size_t>(taken);
      }
    }
    const std::string piece = Receive(1 + random() % 50000);
    if (piece != "nothing yet") got += piece;
    ASSERT_NE(piece, "forged");
  }
  EXPECT_EQ(got, text);
  EXPECT_GT(full, 0);
}

// The peer lives and doesn't know of it. Without a suspicion nobody would propose another view.
TEST(ForgedRecord, EndsTheViewAndMakesItsRankASuspect) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  const UniqueFd other(fds[1]);
  std::vector<int> suspects;
  LivenessMonitor::Options options;
  options.epoch = 1;
  options.peers.resize(2);
  options.on_suspect = [&](int rank, const std::string&) { suspects.push_back(rank); };
  LivenessMonitor monitor(options);
  monitor.SetConnection(1, std::make_unique<Connection>(UniqueFd(fds[0]), 1, StreamKeys()));
  const std::string forged = std::string("\x30\0\0\0", 4) + std::string(0x30, 'x');
  ASSERT_EQ(write(other.get(), forged.data(), forged.size()), static_cast<ssize_t>(forged.size()));
  char into[8];
  FrameReceiver frame(monitor.connection(1), 1, 1, sizeof(into));
  const Status status = ReceiveFrame(&monitor, &frame, into, sizeof(into), 1,
                                     Clock::now() + std::chrono::seconds(10));
  EXPECT_EQ(status.code(), RM_ERR_EPOCH_MOVED);
  EXPECT_NE(status.message().find("rank 1: what came over its connection was changed"),
            std::string::npos)
      << status.message();
  EXPECT_EQ(suspects, std::vector<int>{1});
}

}  // namespace
}  // namespace ringmaster::transport
