#include "collectives/communicator/peer_dialer.h"

#include <utility>

#include "collectives/transport/fault_point.h"

namespace ringmaster::communicator {

using transport::Clock;
using transport::Connection;
using transport::DialResult;
using transport::FaultPoint;
using transport::Hello;
using transport::IoResult;
using transport::ReplyKind;

namespace {

constexpr auto kUnprovenPause = std::chrono::milliseconds(100);

std::string WhyUnproven(const transport::DialerHandshake& handshake) {
  const auto version = handshake.other_version();
  if (!version) return "it does not prove that it holds the ring's key of this job";
  return "it says that it speaks version " + std::to_string(*version) +
         " of the ring's protocol, and this library speaks version " +
         std::to_string(transport::kKeyedWireVersion) +
         ": all pods need libraries that speak the same";
}

}  // namespace

PeerDialer::PeerDialer(const Parts& parts, int rank)
    : parts_(parts), rank_(rank), use_unix_(parts.arenas->on() && !where().shm.empty()) {}

// ---- attempts ----

Status PeerDialer::Dial() {
  DialResult result;
  Status dialled =
      use_unix_ ? DialUnix(where().shm, &fd_, &result) : DialTcp(where().tcp, &fd_, &result);
  const bool strange =
      use_unix_ && result == DialResult::kConnected && !transport::SameUser(fd_.get());
  if (use_unix_ && (strange || result == DialResult::kRefused)) {
    // The peer may be on another machine or in another pod, or it is dead, or a process of another
    // user listens under its name. Dialling its TCP port shows which.
    use_unix_ = false;
    dialled = DialTcp(where().tcp, &fd_, &result);
  }
  if (result == DialResult::kRefused) return Lost("connection refused");
  if (!dialled.ok()) {
    TryAgain(dialled.message());
    return Status();
  }
  state_ = State::kDialing;
  return result == DialResult::kConnected ? SendHello() : Status();
}

void PeerDialer::TryAgain(const std::string& why, std::chrono::milliseconds pause) {
  fd_.Reset();
  arena_.Reset();
  state_ = State::kAbsent;
  trouble_ = why;
  not_before_ = Clock::now() + pause;
}

std::optional<pollfd> PeerDialer::Awaited() const {
  if (state_ == State::kAbsent || state_ == State::kConnected) return std::nullopt;
  return pollfd{fd_.get(), static_cast<short>(state_ == State::kDialing ? POLLOUT : POLLIN), 0};
}

Status PeerDialer::OnEvent() {
  if (state_ == State::kAsked) return ReadChallenge();
  if (state_ == State::kAnswered) return ReadReply();
  return FinishDialing();
}

Status PeerDialer::FinishDialing() {
  DialResult result;
  const Status dialled = transport::DialFinished(fd_.get(), &result);
  if (result == DialResult::kRefused) return Lost("connection refused");
  if (dialled.ok()) return SendHello();
  TryAgain(dialled.message());
  return Status();
}

std::unique_ptr<Connection> PeerDialer::TakeConnection() {
  return std::make_unique<Connection>(std::move(fd_), rank_, std::exchange(keys_, std::nullopt));
}

// ---- what the two ends say to each other ----

Status PeerDialer::SendHello() {
  Hello hello;
  hello.rank = static_cast<uint32_t>(parts_.options->rank);
  hello.epoch = parts_.options->epoch;
  if (use_unix_) {
    hello.arena_id = parts_.arenas->own().id();
    hello.arena_bytes = parts_.arenas->own().bytes();
  }
  handshake_.emplace(*parts_.credentials, hello, static_cast<uint32_t>(rank_),
                     use_unix_ ? where().shm : where().tcp, !use_unix_);
  if (!handshake_->SendHello(fd_.get(), OfferedArena())) {
    TryAgain("Hello could not be sent");
    return Status();
  }
  state_ = handshake_->keyed() ? State::kAsked : State::kAnswered;
  got_ = 0;
  FaultPoint("create_hello_sent");
  return Status();
}

Status PeerDialer::ReadChallenge() {
  switch (handshake_->ReadChallenge(fd_.get())) {
    case transport::DialerHandshake::Result::kAgain:
      return Status();
    case transport::DialerHandshake::Result::kClosed:
      return OnClosed();
    case transport::DialerHandshake::Result::kUnproven:
      // Nothing that this listener says is believed. Nor is it taken as a sign that the peer is
      // dead: the sidecars find that out.
      TryAgain(WhyUnproven(*handshake_), kUnprovenPause);
      return Status();
    case transport::DialerHandshake::Result::kProven:
      break;
  }
  if (handshake_->refuses_encryption()) {
    return parts_.liveness->Fail(RM_ERR_INVALID,
                                 "rank " + std::to_string(rank_) +
                                     " has a library that can't encrypt, and this job's "
                                     "collectives.encryption is On");
  }
  keys_ = handshake_->keys();
  if (handshake_->kind() != ReplyKind::kChallenge && !keys_) {
    reply_ = {};
    reply_.kind = handshake_->kind();
    reply_.epoch = handshake_->epoch();
    return HandleReply();
  }
  if (!handshake_->SendProof(fd_.get(), OfferedArena())) {
    TryAgain("the proof could not be sent");
    return Status();
  }
  state_ = State::kAnswered;
  FaultPoint("create_proof_sent");
  return Status();
}

Status PeerDialer::ReadReply() {
  const IoResult io = RecvSmall(fd_.get(), &reply_, sizeof(reply_), &got_, &arena_);
  if (io == IoResult::kAgain) return Status();
  return io == IoResult::kDone ? HandleReply() : OnClosed();
}

// The peer closed the connection without an answer: it is dying, or its view ended while our Hello
// was parked there.
Status PeerDialer::OnClosed() {
  if (!parts_.probes->MayLive(rank_)) return Lost("connection closed");
  TryAgain("connection closed");
  return Status();
}

Status PeerDialer::HandleReply() {
  const std::string name = "rank " + std::to_string(rank_);
  switch (reply_.magic == transport::kMagic ? reply_.kind : ReplyKind::kWrongVersion) {
    case ReplyKind::kJoined:
      // Without its arena the connection serves as a stream.
      if (use_unix_) (void)parts_.arenas->Map(rank_, arena_, reply_.arena_id, reply_.arena_bytes);
      arena_.Reset();
      state_ = State::kConnected;
      return Status();
    case ReplyKind::kUseTcp:
      use_unix_ = false;
      fd_.Reset();
      state_ = State::kAbsent;
      return Status();
    case ReplyKind::kMovedOn:
      return parts_.liveness->Fail(RM_ERR_EPOCH_MOVED,
                                   name + " is already in epoch " + std::to_string(reply_.epoch));
    case ReplyKind::kWrongJob:
      return parts_.liveness->Fail(RM_ERR_INVALID, name + " at " + where().tcp +
                                                       " belongs to another job than '" +
                                                       parts_.credentials->job + "'");
    case ReplyKind::kNoProof:
      return parts_.liveness->Fail(
          RM_ERR_INVALID, name + " asks for the ring's key of this job, and this worker has none");
    default:
      return parts_.liveness->Fail(RM_ERR_INVALID,
                                   name + " speaks another version of the protocol");
  }
}

}  // namespace ringmaster::communicator
