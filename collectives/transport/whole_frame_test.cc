#include "collectives/transport/whole_frame.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>
#include <vector>

namespace ringmaster::transport {
namespace {

constexpr uint64_t kEpoch = 1;
constexpr uint64_t kOp = 3;

LivenessMonitor::Options TwoRanks(int rank) {
  LivenessMonitor::Options options;
  options.epoch = kEpoch;
  options.rank = rank;
  options.peers.resize(2);
  return options;
}

class WholeFrameTest : public testing::Test {
 protected:
  WholeFrameTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    first_.SetConnection(1, std::make_unique<Connection>(UniqueFd(fds[0]), 1));
    second_.SetConnection(0, std::make_unique<Connection>(UniqueFd(fds[1]), 0));
  }

  LivenessMonitor first_{TwoRanks(0)}, second_{TwoRanks(1)};
};

TEST_F(WholeFrameTest, MoreThanASocketTakesAtOnceArrivesWhole) {
  const std::vector<std::byte> sent(4 << 20, std::byte{42});
  std::vector<std::byte> received(sent.size());
  const auto deadline = Clock::now() + std::chrono::seconds(60);
  std::thread sender([&] {
    FrameSender frame(first_.connection(1), kEpoch, kOp, sent.data(), sent.size());
    EXPECT_TRUE(SendFrame(&first_, &frame, sent.size(), kOp, deadline).ok());
  });
  FrameReceiver frame(second_.connection(0), kEpoch, kOp, received.size());
  EXPECT_TRUE(ReceiveFrame(&second_, &frame, received.data(), received.size(), kOp, deadline).ok());
  sender.join();
  EXPECT_EQ(received, sent);
}

TEST_F(WholeFrameTest, APeerThatIsLateEndsTheView) {
  char into[8];
  FrameReceiver frame(second_.connection(0), kEpoch, kOp, sizeof(into));
  const Status status = ReceiveFrame(&second_, &frame, into, sizeof(into), kOp, Clock::now());
  EXPECT_EQ(status.code(), RM_ERR_TIMEOUT);
  EXPECT_EQ(status.message(), "rank 0 did not answer in time");
  EXPECT_TRUE(second_.aborted());
}

TEST_F(WholeFrameTest, ADeadViewEndsTheWait) {
  std::thread other([&] { second_.Abort("the view is over"); });
  char into[8];
  FrameReceiver frame(second_.connection(0), kEpoch, kOp, sizeof(into));
  const Status status = ReceiveFrame(&second_, &frame, into, sizeof(into), kOp,
                                     Clock::now() + std::chrono::seconds(60));
  other.join();
  EXPECT_EQ(status.message(), "the view is over");
}

}  // namespace
}  // namespace ringmaster::transport
