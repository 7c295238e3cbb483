// The connection between this rank and one peer in one view, and frames on it.
//
// Thread rule: the thread of the collective; Shutdown() from any thread.
#pragma once

#include <netinet/tcp.h>
#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "collectives/transport/sealed_stream.h"
#include "collectives/transport/socket.h"
#include "collectives/transport/unique_fd.h"
#include "collectives/transport/wire.h"

namespace ringmaster::transport {

// Whether the packets of a TCP connection get lost: the kernel retransmits and nothing is
// acknowledged. A peer that computes for long and doesn't read is a different case: its kernel
// acknowledges all that it has room for. TCP_USER_TIMEOUT can't tell the two apart and would end
// that connection, too.
bool IsDeadLink(const tcp_info& info);

class Connection {
 public:
  // With `keys` all that is sent and received is encrypted, without them nothing is.
  Connection(UniqueFd fd, int peer, const std::optional<StreamKeys>& keys = {});

  int fd() const { return fd_.get(); }
  int peer() const { return peer_; }
  void Shutdown() const;
  // Nothing that was sent has been acknowledged for about two seconds (IsDeadLink). Always false
  // for a unix socket.
  bool LinkIsDead() const;

  // Like sendmsg() and recv(), without waiting; on an encrypted connection see SealedStream. A
  // Receive() with little room, for a frame's header, also reads the bytes behind it and keeps them
  // for the next calls, so that a small frame costs one system call. Because poll() knows nothing
  // of the bytes that are kept, a caller must Receive() until there are none before it waits.
  ssize_t Send(std::span<const iovec> parts);
  ssize_t Receive(void* into, size_t room);
  // Copies the bytes that the next Receive() would return, and leaves them there.
  ssize_t Peek(void* into, size_t room);
  bool encrypted() const { return sealed_ != nullptr; }

 private:
  UniqueFd fd_;
  const int peer_;
  std::unique_ptr<SealedStream> sealed_;  // null: not encrypted
  // Bytes that were received ahead and not given out yet: `ahead_size_` bytes from `ahead_at_` on.
  std::array<std::byte, 4096> ahead_;
  size_t ahead_at_ = 0, ahead_size_ = 0;
};

// The outcome of one step of I/O.
// kNone: it would have had to wait. kMismatch: the frame is not the one that was expected. kBye:
// the peer has left the view. kForged: on an encrypted connection bytes have come that the peer has
// not sent.
enum class Progress { kNone, kSome, kClosed, kNewerEpoch, kMismatch, kBye, kForged };

// Sends one frame, whose payload may become available piece by piece.
class FrameSender {
 public:
  FrameSender() = default;
  FrameSender(Connection* connection, uint64_t epoch, uint64_t op, const void* data, size_t bytes,
              FrameKind kind = FrameKind::kData);
  // Sends as much of the header and of the first `ready` payload bytes as the socket takes now.
  Progress Push(size_t ready);
  bool done() const { return header_sent_ == sizeof(header_) && sent_ == header_.bytes; }
  Connection* connection() const { return connection_; }
  size_t sent() const { return sent_; }

 private:
  Connection* connection_ = nullptr;
  FrameHeader header_;
  const std::byte* data_ = nullptr;
  size_t header_sent_ = 0;
  size_t sent_ = 0;
};

// Receives one frame, and drops frames of older epochs that come before it.
class FrameReceiver {
 public:
  FrameReceiver() = default;
  FrameReceiver(Connection* connection, uint64_t epoch, uint64_t op, size_t bytes,
                FrameKind kind = FrameKind::kData);
  // Receives at most `room` payload bytes into `into` and adds their number to *got.
  Progress Pull(void* into, size_t room, size_t* got);
  bool done() const { return expected_ && received_ == bytes_; }
  Connection* connection() const { return connection_; }
  size_t received() const { return received_; }

 private:
  Progress CheckHeader();

  Connection* connection_ = nullptr;
  uint64_t epoch_ = 0;
  uint64_t op_ = 0;
  size_t bytes_ = 0;
  FrameKind kind_ = FrameKind::kData;
  FrameHeader header_;
  size_t header_got_ = 0;
  bool expected_ = false;  // the header was read and is the one we wait for
  size_t to_drop_ = 0;     // payload bytes of an older epoch's frame
  size_t received_ = 0;
};

}  // namespace ringmaster::transport
