// The sidecar's end of the worker link: the unix socket, framing, versions. It knows which
// peers are connected, not what that means.
//
// Thread rule: everything on the thread that runs the io_context, callbacks included. Destroy it
// when that loop has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tl/expected.hpp>

namespace asio {
class io_context;
}

namespace ringmaster::link_server {

using ConnectionId = uint64_t;  // never used again; 0 is none

enum class Role { kLauncher, kWorker };

struct LinkCallbacks {
  // A `hello` of our version came: the connection exists from here on.
  std::function<void(ConnectionId, Role, const nlohmann::json& hello)> on_hello;
  // Any later frame.
  std::function<void(ConnectionId, const nlohmann::json& frame)> on_frame;
  // It is gone, and was announced by on_hello. `why` is for the log.
  std::function<void(ConnectionId, const std::string& why)> on_closed;
};

class LinkServer {
 public:
  // Replaces a socket file that a former sidecar left behind. A peer that says nothing is dropped
  // after `hello_deadline`: it is not one of ours.
  static tl::expected<std::unique_ptr<LinkServer>, std::string> Listen(
      asio::io_context* loop, const std::string& path, LinkCallbacks callbacks,
      std::chrono::milliseconds hello_deadline = std::chrono::seconds(5));
  virtual ~LinkServer() = default;

  // Unknown ids are ignored: the peer may be gone.
  virtual void Send(ConnectionId to, const nlohmann::json& frame) = 0;
  // Process id of the peer as this process would see it; 0 if it lives in another pid namespace or
  // is gone.
  virtual int PeerPid(ConnectionId id) const = 0;
  // Sends `error` with the message, then closes. on_closed still comes.
  virtual void Refuse(ConnectionId id, const std::string& message) = 0;
  // Closes it without a word: to its receiver `error` means that nothing goes on. on_closed still
  // comes.
  virtual void Drop(ConnectionId id) = 0;
  // Closes all, removes the socket file. No callback comes after it.
  virtual void Stop() = 0;
};

}  // namespace ringmaster::link_server
