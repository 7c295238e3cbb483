#include "collectives/transport/probe.h"

#include <poll.h>

#include "collectives/transport/handshake.h"
#include "collectives/transport/socket.h"
#include "collectives/transport/wire.h"

namespace ringmaster::transport {
namespace {

bool ReadPlainAnswer(int fd, Clock::time_point deadline, uint64_t* given_up) {
  HelloReply reply;
  size_t got = 0;
  while (WaitFor(fd, POLLIN, deadline)) {
    const IoResult io = RecvSmall(fd, &reply, sizeof(reply), &got, nullptr);
    if (io == IoResult::kClosed) return false;
    if (io != IoResult::kDone) continue;
    *given_up = reply.epoch;
    return reply.magic == kMagic && reply.kind == ReplyKind::kAlive;
  }
  return false;
}

bool ReadProvenAnswer(int fd, Clock::time_point deadline, DialerHandshake* handshake) {
  while (WaitFor(fd, POLLIN, deadline)) {
    const auto result = handshake->ReadChallenge(fd);
    if (result == DialerHandshake::Result::kAgain) continue;
    return result == DialerHandshake::Result::kProven && handshake->kind() == ReplyKind::kAlive;
  }
  return false;
}

}  // namespace

bool ProbeAlive(const PeerEndpoint& peer, const RingCredentials& credentials,
                std::chrono::milliseconds limit, uint64_t* given_up) {
  uint64_t unused = 0;
  if (given_up == nullptr) given_up = &unused;
  *given_up = 0;
  const auto deadline = Clock::now() + limit;
  UniqueFd fd;
  DialResult result;
  Status dialled = DialTcp(peer.tcp, &fd, &result);
  if (result == DialResult::kNoDescriptor) return true;
  if (result == DialResult::kInProgress) {
    if (!WaitFor(fd.get(), POLLOUT, deadline)) return false;
    dialled = DialFinished(fd.get(), &result);
  }
  if (!dialled.ok()) return false;
  Hello hello;
  hello.kind = HelloKind::kProbe;
  DialerHandshake handshake(credentials, hello, kAnyRank, peer.tcp);
  if (!handshake.SendHello(fd.get(), -1)) return false;
  if (!handshake.keyed()) return ReadPlainAnswer(fd.get(), deadline, given_up);
  const bool alive = ReadProvenAnswer(fd.get(), deadline, &handshake);
  if (alive) *given_up = handshake.epoch();
  return alive;
}

}  // namespace ringmaster::transport
