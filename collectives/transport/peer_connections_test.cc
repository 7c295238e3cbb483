#include "collectives/transport/peer_connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace ringmaster::transport {
namespace {

constexpr uint64_t kEpoch = 4;

// Rank 0 with connections to ranks 1 and 2, whose ends the test holds.
class PeerConnectionsTest : public testing::Test {
 protected:
  PeerConnectionsTest() {
    for (int rank : {1, 2}) connections_.Set(rank, Connect(rank));
  }
  std::unique_ptr<Connection> Connect(int rank) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    theirs_[rank] = UniqueFd(fds[1]);
    return std::make_unique<Connection>(UniqueFd(fds[0]), rank);
  }
  // The peer leaves the view after `op` operations.
  void Leave(int rank, uint64_t op) {
    FrameHeader bye{.kind = FrameKind::kBye, .epoch = kEpoch, .op = op};
    ASSERT_EQ(send(theirs_[rank].get(), &bye, sizeof(bye), 0), static_cast<ssize_t>(sizeof(bye)));
    theirs_[rank] = UniqueFd();
  }
  // Reads as the peer does. -1: nothing is there yet, 0: the connection is closed.
  ssize_t Read(int rank, FrameHeader* header) {
    return recv(theirs_[rank].get(), header, sizeof(*header), MSG_DONTWAIT);
  }

  UniqueFd theirs_[3];
  PeerConnections connections_{3};
};

TEST_F(PeerConnectionsTest, APeerThatClosesWithoutAWordBrokeItsConnection) {
  EXPECT_TRUE(connections_.FindEnded(1).broken.empty());
  theirs_[2] = UniqueFd();
  const auto ended = connections_.FindEnded(1);
  EXPECT_EQ(ended.broken, std::vector<int>{2});
  EXPECT_FALSE(ended.left_early);
}

TEST_F(PeerConnectionsTest, APeerMayLeaveOnceItHasDoneAsManyOperationsAsThisRank) {
  Leave(1, 5);
  EXPECT_FALSE(connections_.FindEnded(5).left_early);
  EXPECT_TRUE(connections_.FindEnded(5).broken.empty());
  EXPECT_EQ(connections_.FindEnded(6).left_early, 1) << "this rank has begun one more";
}

TEST_F(PeerConnectionsTest, DataThatIsStillToBeReadSaysNothingOfTheEnd) {
  FrameHeader data{.epoch = kEpoch, .op = 1};
  ASSERT_EQ(send(theirs_[1].get(), &data, sizeof(data), 0), static_cast<ssize_t>(sizeof(data)));
  theirs_[1] = UniqueFd();
  const auto ended = connections_.FindEnded(9);
  EXPECT_TRUE(ended.broken.empty());
  EXPECT_FALSE(ended.left_early);
}

TEST_F(PeerConnectionsTest, AllPeersAreToldWhenThisRankLeaves) {
  connections_.SendBye(kEpoch, 5);
  for (int rank : {1, 2}) {
    FrameHeader header;
    ASSERT_EQ(Read(rank, &header), static_cast<ssize_t>(sizeof(header)));
    EXPECT_EQ(header.kind, FrameKind::kBye);
    EXPECT_EQ(header.epoch, kEpoch);
    EXPECT_EQ(header.op, 5u);
  }
}

TEST_F(PeerConnectionsTest, AfterAShutdownAlsoAConnectionThatComesLateIsShut) {
  FrameHeader header;
  EXPECT_EQ(Read(1, &header), -1);
  connections_.Shutdown();
  EXPECT_EQ(Read(1, &header), 0);
  connections_.Set(2, Connect(2));
  EXPECT_EQ(Read(2, &header), 0);
}

}  // namespace
}  // namespace ringmaster::transport
