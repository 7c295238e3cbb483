// The gRPC service and client that sidecars of one job speak by (proto/rendezvous.proto), without
// gRPC in this header. With `tls_dir` (ca.crt, tls.crt, tls.key) both ends prove to be of this job,
// without it nobody proves anything: for unix sockets in a directory that others can't enter.
//
// Thread rule: call from the loop; callbacks are posted to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tl/expected.hpp>

namespace asio {
class io_context;
}

namespace ringmaster::rendezvous {

struct Envelope {
  enum class Kind {
    kMember,   // a message of the membership protocol
    kHistory,  // of what the training has done so far: nothing waits for it
  };
  Kind kind = Kind::kMember;
  std::string job_uid;
  std::string from;          // pod uid
  uint64_t incarnation = 0;  // of the sender's membership state
  std::string to;            // pod uid
  std::string address;       // where the sender listens
  std::string body;          // common/membership/message_json.h, or sidecar/app/history_handover.h
};

struct RendezvousOptions {
  std::string host;
  int port = 0;        // 0: chosen free
  std::string socket;  // a unix socket in the place of host and port; empty: none
  std::string job_uid;
  std::string self;     // pod uid
  std::string tls_dir;  // empty: no TLS
};

class RendezvousServer {
 public:
  // Envelopes of another job or to another pod are refused before `receive`.
  static tl::expected<std::unique_ptr<RendezvousServer>, std::string> Listen(
      asio::io_context* loop, const RendezvousOptions& options,
      std::function<void(Envelope)> receive);
  virtual ~RendezvousServer() = default;
  virtual int port() const = 0;  // of no meaning with a socket
  virtual void Stop() = 0;
};

class RendezvousClient {
 public:
  static std::unique_ptr<RendezvousClient> Create(asio::io_context* loop,
                                                  const std::string& job_uid,
                                                  const std::string& tls_dir);
  virtual ~RendezvousClient() = default;

  // Connects now, so that the first message of a rebuild need not wait for a handshake.
  virtual void Prepare(const std::string& address) = 0;

  // Closes the connections to all others. A pod that has left is not dialled for ever; a message to
  // it connects again. Only where the process has another channel that stays: gRPC 1.51 may abort
  // when its last one goes.
  virtual void Retain(const std::set<std::string>& addresses) = 0;

  // Sent once, with a deadline; `failed` says why it did not arrive (it may have), as a sidecar of
  // a version before the kind does not take it. Nothing is tried again: the membership protocol
  // does that where it matters.
  virtual void Send(const std::string& address, const Envelope& envelope,
                    std::chrono::milliseconds deadline,
                    std::function<void(const std::string& why)> failed) = 0;
  // Cancels what is in flight and waits for it.
  virtual void Stop() = 0;
};

}  // namespace ringmaster::rendezvous
