#include "collectives/communicator/bootstrap.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "collectives/communicator/group_agreement.h"
#include "collectives/transport/fault_point.h"
#include "collectives/transport/probe.h"

namespace ringmaster::communicator {

using transport::Clock;
using transport::Connection;
using transport::DialResult;
using transport::FaultPoint;
using transport::Hello;
using transport::HelloReply;
using transport::IoResult;
using transport::ReplyKind;
using transport::UniqueFd;

namespace {

constexpr auto kUnprovenPause = std::chrono::milliseconds(100);
constexpr auto kProbeEvery = std::chrono::milliseconds(20);
constexpr int kTickMillis = 20;

}  // namespace

Bootstrap::Bootstrap(transport::EndpointImpl* endpoint, const CommunicatorOptions& options,
                     transport::LivenessMonitor* liveness)
    : endpoint_(endpoint),
      options_(options),
      liveness_(liveness),
      shm_(options.allow_shm && endpoint->arena() != nullptr),
      size_(static_cast<int>(options.peers.size())),
      deadline_(Clock::now() + options.connect_timeout),
      credentials_(endpoint->credentials()),
      peers_(options.peers.size()),
      next_probe_(Clock::now() + kProbeEvery),
      maps_(options.peers.size()) {
  for (int rank = 0; rank < size_; ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    peer.dial = rank < options.rank;
    peer.use_unix = shm_ && !options.peers[static_cast<size_t>(rank)].shm.empty();
  }
  maps_[static_cast<size_t>(options.rank)] = endpoint->arena();
}

Status Bootstrap::Run() {
  if (credentials_.encrypt && !credentials_.key.present()) {
    return liveness_->Fail(RM_ERR_INVALID,
                           "collectives.encryption is On, and this job has no ring key to encrypt "
                           "with: it began before there was one");
  }
  if (Status s = ConnectAll(); !s.ok()) return s;
  FaultPoint("create_connected");
  std::vector<uint8_t> mapped;
  for (const auto& map : maps_) mapped.push_back(map != nullptr);
  Status status =
      AgreeOnGroups(liveness_, {options_.rank, size_}, options_.epoch, deadline_, mapped, &groups_);
  if (status.ok()) FaultPoint("create_before_return");
  return status;
}

Status Bootstrap::ConnectAll() {
  missing_ = size_ - 1;
  while (missing_ > 0) {
    if (liveness_->aborted()) return liveness_->status();
    Status status = LookForNewerEpoch();
    for (int rank = 0; status.ok() && rank < options_.rank; ++rank) {
      const Peer& peer = peers_[static_cast<size_t>(rank)];
      if (peer.state == State::kAbsent && Clock::now() >= peer.not_before) status = Dial(rank);
    }
    if (status.ok()) status = TakeArrivals();
    if (status.ok() && missing_ > 0) status = WaitForEvents();
    if (!status.ok()) return status;
  }
  return Status();
}

// ---- the side that dials ----

Status Bootstrap::Dial(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const PeerEndpoint& where = options_.peers[static_cast<size_t>(rank)];
  DialResult result;
  Status dialled = peer.use_unix ? DialUnix(where.shm, &peer.fd, &result)
                                 : DialTcp(where.tcp, &peer.fd, &result);
  const bool strange =
      peer.use_unix && result == DialResult::kConnected && !transport::SameUser(peer.fd.get());
  if (peer.use_unix && (strange || result == DialResult::kRefused)) {
    // The peer may be on another machine or in another pod, or it is dead, or a process of another
    // user listens under its name. Dialling its TCP port shows which.
    peer.use_unix = false;
    dialled = DialTcp(where.tcp, &peer.fd, &result);
  }
  if (result == DialResult::kRefused) return Lost(rank, "connection refused");
  if (!dialled.ok()) {
    TryAgain(rank, dialled.message());
    return Status();
  }
  peer.state = State::kDialing;
  return result == DialResult::kConnected ? SendHello(rank) : Status();
}

int Bootstrap::ArenaFor(const Peer& peer) const {
  return peer.use_unix ? endpoint_->arena()->fd() : -1;
}

Status Bootstrap::SendHello(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  const PeerEndpoint& where = options_.peers[static_cast<size_t>(rank)];
  Hello hello;
  hello.rank = static_cast<uint32_t>(options_.rank);
  hello.epoch = options_.epoch;
  if (peer.use_unix) {
    hello.arena_id = endpoint_->arena()->id();
    hello.arena_bytes = endpoint_->arena()->bytes();
  }
  peer.handshake.emplace(credentials_, hello, static_cast<uint32_t>(rank),
                         peer.use_unix ? where.shm : where.tcp, !peer.use_unix);
  if (!peer.handshake->SendHello(peer.fd.get(), ArenaFor(peer))) {
    TryAgain(rank, "Hello could not be sent");
    return Status();
  }
  peer.state = peer.handshake->keyed() ? State::kAsked : State::kAnswered;
  peer.got = 0;
  FaultPoint("create_hello_sent");
  return Status();
}

Status Bootstrap::ReadChallenge(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  switch (peer.handshake->ReadChallenge(peer.fd.get())) {
    case transport::DialerHandshake::Result::kAgain:
      return Status();
    case transport::DialerHandshake::Result::kClosed:
      return OnClosed(rank);
    case transport::DialerHandshake::Result::kUnproven:
      // Nothing that this listener says is believed. Nor is it taken as a sign that the peer is
      // dead: the sidecars find that out.
      TryAgain(rank, "it does not prove that it holds the ring's key of this job", kUnprovenPause);
      return Status();
    case transport::DialerHandshake::Result::kProven:
      break;
  }
  if (peer.handshake->refuses_encryption()) {
    return liveness_->Fail(RM_ERR_INVALID, "rank " + std::to_string(rank) +
                                               " has a library that can't encrypt, and this job's "
                                               "collectives.encryption is On");
  }
  peer.keys = peer.handshake->keys();
  if (peer.handshake->kind() != ReplyKind::kChallenge && !peer.keys) {
    peer.reply = {};
    peer.reply.kind = peer.handshake->kind();
    peer.reply.epoch = peer.handshake->epoch();
    return HandleReply(rank);
  }
  if (!peer.handshake->SendProof(peer.fd.get(), ArenaFor(peer))) {
    TryAgain(rank, "the proof could not be sent");
    return Status();
  }
  peer.state = State::kAnswered;
  FaultPoint("create_proof_sent");
  return Status();
}

Status Bootstrap::ReadReply(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  IoResult io = RecvSmall(peer.fd.get(), &peer.reply, sizeof(peer.reply), &peer.got, &peer.arena);
  if (io == IoResult::kAgain) return Status();
  return io == IoResult::kDone ? HandleReply(rank) : OnClosed(rank);
}

// The peer closed the connection without an answer: it is dying, or its view ended while our Hello
// was parked there.
Status Bootstrap::OnClosed(int rank) {
  if (!MayLive(rank)) return Lost(rank, "connection closed");
  TryAgain(rank, "connection closed");
  return Status();
}

Status Bootstrap::HandleReply(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  std::string name = "rank " + std::to_string(rank);
  switch (peer.reply.magic == transport::kMagic ? peer.reply.kind : ReplyKind::kWrongVersion) {
    case ReplyKind::kJoined: {
      if (peer.use_unix) {
        MapArena(rank, peer.arena, peer.reply.arena_id, peer.reply.arena_bytes);
      }
      Ready(rank);
      return Status();
    }
    case ReplyKind::kUseTcp:
      peer.use_unix = false;
      peer.fd.Reset();
      peer.state = State::kAbsent;
      return Status();
    case ReplyKind::kMovedOn:
      return liveness_->Fail(RM_ERR_EPOCH_MOVED,
                             name + " is already in epoch " + std::to_string(peer.reply.epoch));
    case ReplyKind::kWrongJob:
      return liveness_->Fail(RM_ERR_INVALID,
                             name + " at " + options_.peers[static_cast<size_t>(rank)].tcp +
                                 " belongs to another job than '" + credentials_.job + "'");
    case ReplyKind::kNoProof:
      return liveness_->Fail(
          RM_ERR_INVALID, name + " asks for the ring's key of this job, and this worker has none");
    default:
      return liveness_->Fail(RM_ERR_INVALID, name + " speaks another version of the protocol");
  }
}

void Bootstrap::MapArena(int rank, const UniqueFd& arena, uint64_t id, size_t bytes) {
  const Status mapped = endpoint_->Attach(options_.peers[static_cast<size_t>(rank)].shm, arena, id,
                                          bytes, &maps_[static_cast<size_t>(rank)]);
  if (mapped.ok()) return;
  peers_[static_cast<size_t>(rank)].trouble = mapped.message();
  transport::LogLine("no shared memory with rank " + std::to_string(rank) +
                     ", using a stream: " + mapped.message());
}

void Bootstrap::TryAgain(int rank, const std::string& why, std::chrono::milliseconds pause) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  peer.fd.Reset();
  peer.arena.Reset();
  peer.state = State::kAbsent;
  peer.trouble = why;
  peer.not_before = Clock::now() + pause;
}

// ---- the side that is dialed ----

Status Bootstrap::TakeArrivals() {
  for (auto& arrival : endpoint_->listener().Take(options_.epoch)) Welcome(std::move(arrival));
  return Status();
}

void Bootstrap::Welcome(transport::Arrival arrival) {
  int rank = static_cast<int>(arrival.hello.rank);
  // A Hello that doesn't fit this view (only higher ranks dial this one), or a second attempt of a
  // rank that is connected already: the connection is closed, and the dialer tries again or gives
  // up.
  if (rank <= options_.rank || rank >= size_) return;
  const uint32_t wanted = arrival.wanted_rank;
  if (wanted != transport::kAnyRank && wanted != static_cast<uint32_t>(options_.rank)) return;
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (peer.state == State::kReady) return;
  HelloReply reply;
  reply.epoch = options_.epoch;
  bool share = arrival.is_unix && shm_;
  if (arrival.is_unix && !share) {
    reply.kind = ReplyKind::kUseTcp;
    (void)SendSmall(arrival.fd.get(), &reply, sizeof(reply));
    return;
  }
  int attached = -1;
  if (share) {
    MapArena(rank, arrival.arena, arrival.hello.arena_id, arrival.hello.arena_bytes);
    reply.arena_id = endpoint_->arena()->id();
    reply.arena_bytes = endpoint_->arena()->bytes();
    attached = endpoint_->arena()->fd();
  }
  if (!SendSmall(arrival.fd.get(), &reply, sizeof(reply), attached)) return;
  peer.fd = std::move(arrival.fd);
  peer.keys = arrival.keys;
  Ready(rank);
}

void Bootstrap::Ready(int rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  peer.state = State::kReady;
  peer.arena.Reset();
  liveness_->SetConnection(rank, std::make_unique<Connection>(std::move(peer.fd), rank, peer.keys));
  peer.keys.reset();
  --missing_;
}

// ---- waiting ----

Status Bootstrap::WaitForEvents() {
  std::vector<pollfd> polls = {{endpoint_->listener().event(), POLLIN, 0},
                               {liveness_->abort_event(), POLLIN, 0}};
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    if (peer.state == State::kAbsent || peer.state == State::kReady) continue;
    polls.push_back(
        {peer.fd.get(), static_cast<short>(peer.state == State::kDialing ? POLLOUT : POLLIN), 0});
    ranks.push_back(rank);
  }
  bool may_dial = ranks.size() < static_cast<size_t>(missing_);
  int limit = may_dial ? 5 : kTickMillis;
  poll(polls.data(), polls.size(), transport::PollMillis(deadline_, limit));
  if (liveness_->aborted()) return liveness_->status();
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (polls[i + 2].revents == 0) continue;
    int rank = ranks[i];
    Status status;
    const State state = peers_[static_cast<size_t>(rank)].state;
    if (state == State::kAsked) {
      status = ReadChallenge(rank);
    } else if (state == State::kAnswered) {
      status = ReadReply(rank);
    } else {
      DialResult result;
      const Status dialled =
          transport::DialFinished(peers_[static_cast<size_t>(rank)].fd.get(), &result);
      if (result == DialResult::kRefused) return Lost(rank, "connection refused");
      if (dialled.ok()) status = SendHello(rank);
      if (!dialled.ok()) TryAgain(rank, dialled.message());
    }
    if (!status.ok()) return status;
  }
  if (Clock::now() >= deadline_) return TimeoutStatus();
  return LookForTheDead();
}

// False: the rank has not answered a probe in time. What is cut short by the deadline proves
// nothing.
bool Bootstrap::MayLive(int rank) const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
  return transport::ProbeAlive(options_.peers[static_cast<size_t>(rank)], credentials_,
                               std::min(options_.probe_limit, left)) ||
         Clock::now() >= deadline_;
}

// The connection to a member that dies is closed, so connected members show it by themselves. Those
// that should have dialled this rank and have not are probed, one at a time.
Status Bootstrap::LookForTheDead() {
  if (Clock::now() < next_probe_) return Status();
  next_probe_ = Clock::now() + kProbeEvery;
  Status status = liveness_->CheckConnections(0);
  if (!status.ok()) return status;
  for (int i = 0; i < size_; ++i) {
    int rank = (probe_turn_ + i) % size_;
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    if (rank <= options_.rank || peer.state == State::kReady) continue;
    probe_turn_ = rank + 1;
    if (!MayLive(rank)) return Lost(rank, "no answer while the view was built");
    break;
  }
  return Status();
}

Status Bootstrap::LookForNewerEpoch() {
  uint64_t newest = endpoint_->listener().Newest();
  if (newest <= options_.epoch) return Status();
  return liveness_->Fail(RM_ERR_EPOCH_MOVED,
                         "a peer is already in epoch " + std::to_string(newest));
}

Status Bootstrap::Lost(int rank, const std::string& why) { return liveness_->Suspect(rank, why); }

Status Bootstrap::TimeoutStatus() const {
  std::string ranks;
  std::string trouble;
  int absent = -1;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == options_.rank || peers_[static_cast<size_t>(rank)].state == State::kReady) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    if (absent < 0) absent = rank;
    if (trouble.empty()) trouble = peers_[static_cast<size_t>(rank)].trouble;
  }
  if (absent >= 0) liveness_->ReportBrokenLink(absent, "no connection to it could be made");
  return liveness_->Fail(RM_ERR_TIMEOUT, "epoch " + std::to_string(options_.epoch) +
                                             ": no connection with rank " + ranks + " within " +
                                             std::to_string(options_.connect_timeout.count()) +
                                             " ms" + (trouble.empty() ? "" : " (" + trouble + ")"));
}

}  // namespace ringmaster::communicator
