// The sidecar with its sockets: worker link, heartbeats, gRPC, HTTP, all posting to one loop that
// owns the Agent.
#pragma once

#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "sidecar/app/options.h"

namespace asio {
class io_context;
}

namespace ringmaster::app {

class Sidecar {
 public:
  // Listens and starts. The error is one message for people.
  static tl::expected<std::unique_ptr<Sidecar>, std::string> Start(asio::io_context* loop,
                                                                   const SidecarOptions& options);
  virtual ~Sidecar() = default;

  // SIGTERM: drains, then stops the loop.
  virtual void Terminate() = 0;
  virtual int exit_code() const = 0;
};

}  // namespace ringmaster::app
