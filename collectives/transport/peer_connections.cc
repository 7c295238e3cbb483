#include "collectives/transport/peer_connections.h"

#include <utility>

namespace ringmaster::transport {
namespace {

// How a connection whose other end is closed has ended, as its unread bytes tell.
enum class Ending { kUndecided, kLeft, kLeftEarly, kBroken };

Ending ReadEnding(Connection* connection, uint64_t op) {
  FrameHeader header;
  const ssize_t rc = connection->Peek(&header, sizeof(header));
  if (rc <= 0) return Ending::kBroken;
  // There is data before the end: the operation that waits for it decides.
  if (rc < static_cast<ssize_t>(sizeof(header)) || header.magic != kMagic ||
      header.kind != FrameKind::kBye) {
    return Ending::kUndecided;
  }
  return header.op >= op ? Ending::kLeft : Ending::kLeftEarly;
}

}  // namespace

void PeerConnections::Set(int peer, std::unique_ptr<Connection> connection) {
  sync::MutexLock lock(&mu_);
  if (shut_ && connection != nullptr) connection->Shutdown();
  connections_[static_cast<size_t>(peer)] = std::move(connection);
}

void PeerConnections::Shutdown() {
  sync::MutexLock lock(&mu_);
  shut_ = true;
  for (const auto& connection : connections_) {
    if (connection != nullptr) connection->Shutdown();
  }
}

PeerConnections::Ended PeerConnections::FindEnded(uint64_t op) {
  polls_.clear();
  for (const auto& connection : connections_) {
    if (connection != nullptr) polls_.push_back({connection->fd(), POLLRDHUP, 0});
  }
  Ended ended;
  if (poll(polls_.data(), polls_.size(), 0) <= 0) return ended;
  size_t at = 0;
  for (const auto& connection : connections_) {
    if (connection == nullptr || polls_[at++].revents == 0) continue;
    const Ending ending = ReadEnding(connection.get(), op);
    if (ending == Ending::kLeftEarly) {
      ended.left_early = connection->peer();
      return ended;
    }
    if (ending == Ending::kBroken) ended.broken.push_back(connection->peer());
  }
  return ended;
}

std::vector<int> PeerConnections::FindDeadLinks() const {
  std::vector<int> dead;
  for (const auto& connection : connections_) {
    if (connection != nullptr && connection->LinkIsDead()) dead.push_back(connection->peer());
  }
  return dead;
}

void PeerConnections::SendBye(uint64_t epoch, uint64_t op) const {
  FrameHeader bye;
  bye.kind = FrameKind::kBye;
  bye.epoch = epoch;
  bye.op = op;
  for (const auto& connection : connections_) {
    const iovec part{&bye, sizeof(bye)};
    if (connection != nullptr) (void)connection->Send({&part, 1});
  }
}

}  // namespace ringmaster::transport
