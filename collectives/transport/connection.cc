#include "collectives/transport/connection.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ringmaster::transport {
namespace {

// Up to this room a Receive() is for a header; with more it is for a payload, which is worth a
// system call of its own.
constexpr size_t kLittleRoom = 64;

// The most bytes of one call, so that both directions get their turn while the data is in cache.
constexpr size_t kMostAtOnce = 256 << 10;

// A link is dead if it has reached both. On a fast network the kernel retransmits after 0.2 s and
// doubles that time, so it has done so three times after 1.4 s; on a slow network two seconds may
// mean fewer retransmissions.
constexpr unsigned kFruitlessRepeats = 3;
constexpr unsigned kSilentMillis = 2000;

Progress FromErrno() {
  if (errno == EBADMSG) return Progress::kForged;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Progress::kNone
                                                                   : Progress::kClosed;
}

}  // namespace

Connection::Connection(UniqueFd fd, int peer, const std::optional<StreamKeys>& keys)
    : fd_(std::move(fd)),
      peer_(peer),
      sealed_(keys ? std::make_unique<SealedStream>(*keys) : nullptr) {}

ssize_t Connection::Send(std::span<const iovec> parts) {
  if (sealed_) return sealed_->Send(fd_.get(), parts);
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t Connection::Receive(void* into, size_t room) {
  if (sealed_) return sealed_->Receive(fd_.get(), into, room);
  if (ahead_size_ == 0) {
    if (room > kLittleRoom) return recv(fd_.get(), into, room, MSG_DONTWAIT);
    const ssize_t rc = recv(fd_.get(), ahead_.data(), ahead_.size(), MSG_DONTWAIT);
    if (rc <= 0) return rc;
    ahead_at_ = 0;
    ahead_size_ = static_cast<size_t>(rc);
  }
  const size_t taken = std::min(room, ahead_size_);
  std::memcpy(into, ahead_.data() + ahead_at_, taken);
  ahead_at_ += taken;
  ahead_size_ -= taken;
  return static_cast<ssize_t>(taken);
}

ssize_t Connection::Peek(void* into, size_t room) {
  if (sealed_) return sealed_->Peek(fd_.get(), into, room);
  if (ahead_size_ > 0) {
    const size_t seen = std::min(room, ahead_size_);
    std::memcpy(into, ahead_.data() + ahead_at_, seen);
    return static_cast<ssize_t>(seen);
  }
  return recv(fd_.get(), into, room, MSG_PEEK | MSG_DONTWAIT);
}

void Connection::Shutdown() const { shutdown(fd_.get(), SHUT_RDWR); }

bool IsDeadLink(const tcp_info& info) {
  return info.tcpi_unacked > 0 && info.tcpi_retransmits >= kFruitlessRepeats &&
         info.tcpi_last_ack_recv >= kSilentMillis;
}

bool Connection::LinkIsDead() const {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  return getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && IsDeadLink(info);
}

FrameSender::FrameSender(Connection* connection, uint64_t epoch, uint64_t op, const void* data,
                         size_t bytes, FrameKind kind)
    : connection_(connection), data_(static_cast<const std::byte*>(data)) {
  header_.kind = kind;
  header_.epoch = epoch;
  header_.op = op;
  header_.bytes = bytes;
}

Progress FrameSender::Push(size_t ready) {
  iovec parts[2];
  size_t count = 0;
  if (header_sent_ < sizeof(header_)) {
    parts[count++] = {reinterpret_cast<char*>(&header_) + header_sent_,
                      sizeof(header_) - header_sent_};
  }
  if (ready > sent_) {
    parts[count++] = {const_cast<std::byte*>(data_) + sent_, std::min(ready - sent_, kMostAtOnce)};
  }
  if (count == 0) return Progress::kNone;
  const ssize_t rc = connection_->Send({parts, count});
  if (rc < 0) return FromErrno();
  size_t of_header = std::min(static_cast<size_t>(rc), sizeof(header_) - header_sent_);
  header_sent_ += of_header;
  sent_ += static_cast<size_t>(rc) - of_header;
  return rc > 0 ? Progress::kSome : Progress::kNone;
}

FrameReceiver::FrameReceiver(Connection* connection, uint64_t epoch, uint64_t op, size_t bytes,
                             FrameKind kind)
    : connection_(connection), epoch_(epoch), op_(op), bytes_(bytes), kind_(kind) {}

Progress FrameReceiver::CheckHeader() {
  if (header_.magic != kMagic) return Progress::kMismatch;
  if (header_.epoch > epoch_) return Progress::kNewerEpoch;
  if (header_.epoch < epoch_) {
    to_drop_ = header_.bytes;
    header_got_ = 0;
    return Progress::kSome;
  }
  if (header_.kind == FrameKind::kBye) return Progress::kBye;
  if (header_.kind != kind_ || header_.op != op_ || header_.bytes != bytes_)
    return Progress::kMismatch;
  expected_ = true;
  return Progress::kSome;
}

Progress FrameReceiver::Pull(void* into, size_t room, size_t* got) {
  char waste[4096];
  ssize_t rc;
  // Never reads beyond the header into the caller's buffer: until the header was checked, what
  // follows may be the payload of an older frame.
  if (to_drop_ > 0) {
    rc = connection_->Receive(waste, std::min(to_drop_, sizeof(waste)));
  } else if (!expected_) {
    rc = connection_->Receive(reinterpret_cast<char*>(&header_) + header_got_,
                              sizeof(header_) - header_got_);
  } else {
    if (room == 0 || received_ == bytes_) return Progress::kNone;
    rc = connection_->Receive(into, std::min({room, bytes_ - received_, kMostAtOnce}));
  }
  if (rc < 0) return FromErrno();
  if (rc == 0) return Progress::kClosed;
  size_t n = static_cast<size_t>(rc);
  if (to_drop_ > 0) {
    to_drop_ -= n;
  } else if (!expected_) {
    header_got_ += n;
    if (header_got_ == sizeof(header_)) return CheckHeader();
  } else {
    received_ += n;
    *got += n;
  }
  return Progress::kSome;
}

}  // namespace ringmaster::transport
