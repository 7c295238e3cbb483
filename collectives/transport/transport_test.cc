#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectives/transport/arena.h"
#include "collectives/transport/connection.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/liveness_monitor.h"
#include "collectives/transport/probe.h"
#include "common/sync/pause.h"
#include "tests/support/send_descriptors.h"
#include "tests/support/until.h"

namespace ringmaster::transport {
namespace {

// A connection that waits for its Hello to be answered.
struct Client {
  UniqueFd fd;

  bool Dial(const PeerEndpoint& where, bool by_unix) {
    DialResult result;
    const Status dialled =
        by_unix ? DialUnix(where.shm, &fd, &result) : DialTcp(where.tcp, &fd, &result);
    return dialled.ok();
  }
  bool Send(const Hello& hello) { return SendSmall(fd.get(), &hello, sizeof(hello)); }
  // False, and no value in `reply`, if the connection is closed or stays silent for long.
  bool Hear(HelloReply* reply) {
    size_t got = 0;
    while (true) {
      pollfd entry{fd.get(), POLLIN, 0};
      if (poll(&entry, 1, 10000) <= 0) return false;
      IoResult io = RecvSmall(fd.get(), reply, sizeof(*reply), &got, nullptr);
      if (io == IoResult::kDone) return true;
      if (io == IoResult::kClosed) return false;
    }
  }
};

Hello HelloFor(uint64_t epoch, const std::string& job = "job") {
  Hello hello;
  hello.epoch = epoch;
  hello.rank = 1;
  CopyName(job, hello.job);
  return hello;
}

std::unique_ptr<EndpointImpl> MakeEndpoint() {
  std::unique_ptr<EndpointImpl> endpoint;
  Status status = EndpointImpl::Create({.job = "job"}, &endpoint);
  EXPECT_TRUE(status.ok()) << status.message();
  return endpoint;
}

void WaitForArrival(EndpointImpl& endpoint) {
  pollfd entry{endpoint.listener().event(), POLLIN, 0};
  ASSERT_EQ(poll(&entry, 1, 10000), 1);
}

TEST(Listener, RefusesAStaleEpochWithTheNewerOne) {
  auto endpoint = MakeEndpoint();
  ASSERT_TRUE(endpoint->listener().Begin(7).ok());
  Client client;
  ASSERT_TRUE(client.Dial(endpoint->Address(), false));
  ASSERT_TRUE(client.Send(HelloFor(6)));
  HelloReply reply;
  ASSERT_TRUE(client.Hear(&reply));
  EXPECT_EQ(reply.kind, ReplyKind::kMovedOn);
  EXPECT_EQ(reply.epoch, 7u);
}

TEST(Listener, ParksANewerEpochAndTellsTheParkedOnesThatWereOvertaken) {
  auto endpoint = MakeEndpoint();
  ASSERT_TRUE(endpoint->listener().Begin(1).ok());
  Client overtaken, parked;
  ASSERT_TRUE(overtaken.Dial(endpoint->Address(), true));
  ASSERT_TRUE(overtaken.Send(HelloFor(5)));
  WaitForArrival(*endpoint);
  EXPECT_TRUE(endpoint->listener().Take(1).empty());
  EXPECT_EQ(endpoint->listener().Newest(), 5u);
  ASSERT_TRUE(parked.Dial(endpoint->Address(), true));
  ASSERT_TRUE(parked.Send(HelloFor(6)));
  WaitForArrival(*endpoint);
  ASSERT_TRUE(endpoint->listener().Begin(6).ok());
  auto arrivals = endpoint->listener().Take(6);
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_TRUE(arrivals[0].is_unix);
  HelloReply reply;
  ASSERT_TRUE(overtaken.Hear(&reply));
  EXPECT_EQ(reply.kind, ReplyKind::kMovedOn);
}

TEST(Listener, EpochsOnlyRise) {
  auto endpoint = MakeEndpoint();
  ASSERT_TRUE(endpoint->listener().Begin(5).ok());
  EXPECT_EQ(endpoint->listener().Begin(5).code(), RM_ERR_INVALID);
  EXPECT_EQ(endpoint->listener().Begin(4).code(), RM_ERR_EPOCH_MOVED);
}

TEST(Listener, RefusesAnotherJobAndAnotherVersion) {
  auto endpoint = MakeEndpoint();
  Client stranger, old;
  HelloReply reply;
  ASSERT_TRUE(stranger.Dial(endpoint->Address(), true));
  ASSERT_TRUE(stranger.Send(HelloFor(1, "another")));
  ASSERT_TRUE(stranger.Hear(&reply));
  EXPECT_EQ(reply.kind, ReplyKind::kWrongJob);
  Hello hello = HelloFor(1);
  hello.version = kWireVersion + 1;
  ASSERT_TRUE(old.Dial(endpoint->Address(), false));
  ASSERT_TRUE(old.Send(hello));
  ASSERT_TRUE(old.Hear(&reply));
  EXPECT_EQ(reply.kind, ReplyKind::kWrongVersion);
}

TEST(Listener, CutsOffStrangersAndServesOthersMeanwhile) {
  auto endpoint = MakeEndpoint();
  Client silent, babbler, probe;
  ASSERT_TRUE(silent.Dial(endpoint->Address(), false));
  ASSERT_TRUE(babbler.Dial(endpoint->Address(), false));
  const char text[] = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_TRUE(SendSmall(babbler.fd.get(), text, sizeof(text)));
  HelloReply reply;
  EXPECT_FALSE(babbler.Hear(&reply));
  EXPECT_TRUE(ProbeAlive(endpoint->Address(), {"job", {}}, std::chrono::seconds(10)));
}

TEST(Probe, TellsTheLivingFromTheDead) {
  auto endpoint = MakeEndpoint();
  PeerEndpoint address = endpoint->Address();
  EXPECT_TRUE(ProbeAlive(address, {"job", {}}, std::chrono::seconds(10)));
  EXPECT_TRUE(UnixListenerExists(address.shm));
  endpoint.reset();
  EXPECT_FALSE(ProbeAlive(address, {"job", {}}, std::chrono::seconds(10)));
  EXPECT_FALSE(UnixListenerExists(address.shm));
}

TEST(Probe, AProcessWithoutDescriptorsCallsNobodyDead) {
  auto endpoint = MakeEndpoint();
  const PeerEndpoint address = endpoint->Address();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool alive = ProbeAlive(address, {"job", {}}, std::chrono::seconds(10));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(alive);
}

TEST(Addresses, BadOnesAreNamed) {
  std::unique_ptr<EndpointImpl> endpoint;
  for (const char* bind : {"nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999999"}) {
    Status status = EndpointImpl::Create({.bind = bind}, &endpoint);
    EXPECT_FALSE(status.ok()) << bind;
    EXPECT_NE(status.message().find(bind), std::string::npos) << status.message();
  }
  UniqueFd fd;
  EXPECT_EQ(ListenUnix(std::string(108, 'x'), &fd).code(), RM_ERR_INVALID);
}

TEST(Arena, CannotBeShrunkUnderAPeer) {
  std::shared_ptr<Arena> arena;
  ASSERT_TRUE(Arena::Create(0, &arena).ok());
  EXPECT_NE(ftruncate(arena->fd(), 4096), 0);
}

TEST(Arena, UnsealedOrShortDescriptorsAreRefused) {
  UniqueFd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kBufferOffset), 0);
  std::shared_ptr<ArenaMap> map;
  Status status = ArenaMap::Attach(unsealed, 1, kBufferOffset, &map);
  EXPECT_NE(status.message().find("sealed"), std::string::npos) << status.message();
  std::shared_ptr<Arena> arena;
  ASSERT_TRUE(Arena::Create(kBufferOffset, &arena).ok());
  UniqueFd copy(dup(arena->fd()));
  status = ArenaMap::Attach(copy, arena->id(), 2 * kBufferOffset, &map);
  EXPECT_NE(status.message().find("announced"), std::string::npos) << status.message();
  EXPECT_FALSE(ArenaMap::Attach(copy, arena->id() + 1, kBufferOffset, &map).ok())
      << "another arena's number";
  EXPECT_FALSE(ArenaMap::Attach(UniqueFd(), 1, kBufferOffset, &map).ok());
  EXPECT_TRUE(ArenaMap::Attach(copy, arena->id(), kBufferOffset, &map).ok());
}

TEST(Arena, HugeOneIsAnErrorAndTheEndpointGoesOnWithoutSharedMemory) {
  std::unique_ptr<EndpointImpl> endpoint;
  ASSERT_TRUE(EndpointImpl::Create({.job = "job", .arena_bytes = size_t{1} << 60}, &endpoint).ok());
  EXPECT_EQ(endpoint->arena(), nullptr);
  EXPECT_EQ(endpoint->Address().shm, "");
}

TEST(Arena, IsReplacedWhenADroppedPeerStillLives) {
  auto ours = MakeEndpoint(), theirs = MakeEndpoint();
  std::shared_ptr<ArenaMap> map;
  UniqueFd fd(dup(theirs->arena()->fd()));
  auto attach = [&] {
    return ours->Attach(theirs->Address().shm, fd, theirs->arena()->id(), theirs->arena()->bytes(),
                        &map);
  };
  ASSERT_TRUE(attach().ok());
  ASSERT_NE(map, nullptr);
  uint64_t before = ours->arena()->id();
  PeerEndpoint kept[] = {ours->Address(), theirs->Address()};
  ours->KeepOnly(kept);
  EXPECT_EQ(ours->arena()->id(), before);
  ours->KeepOnly({kept, 1});
  EXPECT_NE(ours->arena()->id(), before) << "the dropped peer could still write into it";
  before = ours->arena()->id();
  ASSERT_TRUE(attach().ok());
  theirs.reset();
  ours->KeepOnly({kept, 1});
  EXPECT_EQ(ours->arena()->id(), before) << "the dead write nothing";
}

// Else each worker of the machine that is dropped alive would cost its neighbours an arena for
// ever.
TEST(Arena, OneThatWasReplacedIsKeptOnlyForWhomMayReadABufferInIt) {
  auto ours = MakeEndpoint(), theirs = MakeEndpoint();
  const PeerEndpoint alone[] = {ours->Address()};
  // Lets go of the present arena, as a view without the other process does.
  auto replace = [&] {
    std::shared_ptr<ArenaMap> map;
    const UniqueFd fd(dup(theirs->arena()->fd()));
    EXPECT_TRUE(ours->Attach(theirs->Address().shm, fd, theirs->arena()->id(),
                             theirs->arena()->bytes(), &map)
                    .ok());
    ours->KeepOnly(alone);
  };
  std::weak_ptr<Arena> unused = ours->arena();
  std::shared_ptr<Arena> of_a_communicator = ours->arena();
  replace();
  EXPECT_TRUE(of_a_communicator->Buffer(1).empty()) << "nobody would keep it";
  of_a_communicator.reset();
  EXPECT_TRUE(unused.expired());

  std::weak_ptr<Arena> lent = ours->arena();
  const auto buffer = ours->arena()->Buffer(100);
  ASSERT_EQ(buffer.size(), 100u);
  buffer[99] = std::byte{7};
  replace();
  ASSERT_FALSE(lent.expired());
  EXPECT_EQ(buffer[99], std::byte{7});
  EXPECT_EQ(lent.lock()->fd(), -1) << "a descriptor each time";
}

TEST(Flags, OfAnotherViewCountAsNothing) {
  Flag flag{};
  Raise(&flag, EpochTag(5), 100);
  EXPECT_TRUE(Reached(flag, EpochTag(5), 100));
  EXPECT_FALSE(Reached(flag, EpochTag(5), 101));
  EXPECT_FALSE(Reached(flag, EpochTag(6), 1));
  EXPECT_NE(EpochTag(uint64_t{1} << 40 | 7), EpochTag(uint64_t{2} << 40 | 7));
}

class Frames : public ::testing::Test {
 protected:
  Frames() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    ours_ = std::make_unique<Connection>(UniqueFd(fds[0]), 1);
    theirs_ = std::make_unique<Connection>(UniqueFd(fds[1]), 0);
  }
  void Send(uint64_t epoch, uint64_t op, const std::string& text) {
    FrameSender frame(theirs_.get(), epoch, op, text.data(), text.size());
    while (!frame.done()) ASSERT_NE(frame.Push(text.size()), Progress::kClosed);
  }
  // Pulls until something other than progress comes.
  Progress Receive(uint64_t epoch, uint64_t op, std::string* text) {
    FrameReceiver frame(ours_.get(), epoch, op, text->size());
    size_t got = 0;
    Progress progress = Progress::kSome;
    while (!frame.done() && progress == Progress::kSome) {
      progress = frame.Pull(text->data() + got, text->size() - got, &got);
    }
    return progress;
  }
  std::unique_ptr<Connection> ours_, theirs_;
};

TEST_F(Frames, OfAnOlderEpochAreDropped) {
  Send(4, 1, std::string(10000, 'o'));
  Send(5, 1, "");
  Send(5, 1, "fresh");
  std::string nothing, text(5, ' ');
  EXPECT_EQ(Receive(5, 1, &nothing), Progress::kSome);
  EXPECT_EQ(Receive(5, 1, &text), Progress::kSome);
  EXPECT_EQ(text, "fresh");
}

TEST_F(Frames, SmallOnesTakeOneCallTogetherAndAreSeenUntilTheyAreReceived) {
  Send(5, 1, "first");
  Send(5, 2, "second");
  std::string text(5, ' ');
  EXPECT_EQ(Receive(5, 1, &text), Progress::kSome);
  EXPECT_EQ(text, "first");
  std::byte left;
  EXPECT_EQ(recv(ours_->fd(), &left, 1, MSG_PEEK | MSG_DONTWAIT), -1) << "all was taken";
  FrameHeader next;
  EXPECT_EQ(ours_->Peek(&next, sizeof(next)), static_cast<ssize_t>(sizeof(next)));
  EXPECT_EQ(next.op, 2u);
  text.assign(6, ' ');
  EXPECT_EQ(Receive(5, 2, &text), Progress::kSome);
  EXPECT_EQ(text, "second");
  EXPECT_EQ(ours_->Peek(&next, sizeof(next)), -1);
  Send(5, 3, std::string(100'000, 'l'));
  Send(5, 4, "last");
  std::string large(100'000, ' ');
  EXPECT_EQ(Receive(5, 3, &large), Progress::kSome);
  EXPECT_EQ(large, std::string(100'000, 'l'));
  text.assign(4, ' ');
  EXPECT_EQ(Receive(5, 4, &text), Progress::kSome);
  EXPECT_EQ(text, "last");
  theirs_.reset();
  EXPECT_EQ(Receive(5, 5, &text), Progress::kClosed);
}

TEST_F(Frames, OfANewerEpochEndTheCall) {
  Send(6, 1, "x");
  std::string text(1, ' ');
  EXPECT_EQ(Receive(5, 1, &text), Progress::kNewerEpoch);
}

TEST_F(Frames, OfAnotherOperationOrSizeAreAMismatch) {
  Send(5, 2, "x");
  std::string text(1, ' ');
  EXPECT_EQ(Receive(5, 1, &text), Progress::kMismatch);
  Send(5, 1, "xy");
}

TEST_F(Frames, ClosedConnectionIsTold) {
  theirs_.reset();
  std::string text(1, ' ');
  EXPECT_EQ(Receive(5, 1, &text), Progress::kClosed);
}

TEST(Links, APeerThatDoesNotReadForLongIsNoDeadLink) {
  tcp_info dead = {};
  dead.tcpi_unacked = 1;
  dead.tcpi_retransmits = 3;
  dead.tcpi_last_ack_recv = 2000;
  EXPECT_TRUE(IsDeadLink(dead));
  tcp_info no_room = dead;  // all that was sent is acknowledged; the next byte waits for room
  no_room.tcpi_unacked = 0;
  no_room.tcpi_probes = 8;
  no_room.tcpi_last_ack_recv = 60000;
  EXPECT_FALSE(IsDeadLink(no_room));
  tcp_info lossy = dead;
  lossy.tcpi_last_ack_recv = 300;
  EXPECT_FALSE(IsDeadLink(lossy));
  tcp_info idle = {};
  idle.tcpi_last_ack_recv = 600000;
  EXPECT_FALSE(IsDeadLink(idle));
}

int SendBuffer(int fd) {
  int bytes = 0;
  socklen_t size = sizeof(bytes);
  EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size), 0);
  return bytes;
}

// With a smaller buffer a sender waits for delayed acknowledgements, with a larger one for memory.
TEST(Links, OfAMachineToItselfHoldSomeSegmentsAtBothEnds) {
  constexpr int kSegment = 64 << 10;
  for (const std::string host : {"127.0.0.1", "[::1]"}) {
    UniqueFd listener, fd;
    std::string address;
    DialResult result;
    if (!ListenTcp(host + ":0", &listener, &address).ok()) continue;  // a machine without IPv6
    ASSERT_TRUE(DialTcp(address, &fd, &result).ok());
    ASSERT_TRUE(WaitFor(listener.get(), POLLIN, Clock::now() + std::chrono::seconds(10)));
    const UniqueFd theirs(accept(listener.get(), nullptr, nullptr));
    ASSERT_TRUE(theirs.valid());
    SetUpTcp(theirs.get());
    for (const int end : {fd.get(), theirs.get()}) {
      EXPECT_GE(SendBuffer(end), 3 * kSegment) << address;
      EXPECT_LE(SendBuffer(end), 5 * kSegment) << address;
    }
  }
}

// A connection to this machine through which nothing gets, and neither end is told.
struct DeadLink {
  UniqueFd listener, ours, theirs;
  std::string address;

  void Make() {
    DialResult result;
    ASSERT_TRUE(ListenTcp("127.0.0.1:0", &listener, &address).ok());
    ASSERT_TRUE(DialTcp(address, &ours, &result).ok());
    ASSERT_TRUE(WaitFor(listener.get(), POLLIN, Clock::now() + std::chrono::seconds(10)));
    theirs = UniqueFd(accept(listener.get(), nullptr, nullptr));
    ASSERT_TRUE(theirs.valid());
    sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    const sock_fprog program{1, drop_all};
    ASSERT_EQ(setsockopt(theirs.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
  }
};

TEST(Links, ThatSwallowWhatIsSentAreFound) {
  DeadLink link;
  ASSERT_NO_FATAL_FAILURE(link.Make());
  const Connection ours(std::move(link.ours), 1);
  EXPECT_FALSE(ours.LinkIsDead());
  ASSERT_EQ(send(ours.fd(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(support::Until([&] { return ours.LinkIsDead(); }));
}

TEST(Links, ThatSwallowWhatIsSentAreFoundByARankThatWaitsInSharedMemory) {
  DeadLink link;
  ASSERT_NO_FATAL_FAILURE(link.Make());
  LivenessMonitor::Options options{.epoch = 5, .rank = 0};
  options.peers.resize(2);
  options.peers[1].tcp = link.address;
  LivenessMonitor liveness(std::move(options));
  liveness.SetConnection(1, std::make_unique<Connection>(std::move(link.ours), 1));
  ASSERT_EQ(send(liveness.connection(1)->fd(), "x", 1, MSG_NOSIGNAL), 1);
  const std::jthread end([&](const std::stop_token& stop) {
    sync::Pause(stop, std::chrono::seconds(30));
    liveness.Abort("the test ends");
  });
  Flag flag{};
  const Status waited = liveness.WaitFlag(&flag, EpochTag(5), 1, 1);
  EXPECT_FALSE(waited.ok());
  EXPECT_EQ(waited.message().find("the test ends"), std::string::npos) << waited.message();
}

// A peer may send more of them than anybody expects.
TEST(SmallMessages, LeaveNoDescriptorOpen) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  const UniqueFd ours(fds[0]), theirs(fds[1]);
  const int attached[] = {ours.get(), ours.get(), ours.get()};
  ASSERT_TRUE(support::SendWithDescriptors(theirs.get(), "x", attached));
  // The kernel gives out the lowest numbers that are free.
  std::vector<UniqueFd> free;
  for (int i = 0; i < 4; ++i) free.emplace_back(dup(ours.get()));
  std::vector<int> numbers;
  for (const UniqueFd& fd : free) numbers.push_back(fd.get());
  free.clear();
  UniqueFd kept;
  char byte = 0;
  size_t got = 0;
  ASSERT_EQ(RecvSmall(ours.get(), &byte, 1, &got, &kept), IoResult::kDone);
  EXPECT_TRUE(kept.valid());
  kept = UniqueFd();
  for (const int number : numbers) EXPECT_EQ(fcntl(number, F_GETFD), -1) << number;
}

}  // namespace
}  // namespace ringmaster::transport
