// The HTTP server of common/http on the sidecar's own loop: no second thread has to look at its
// state.
//
// Thread rule: everything on the thread that runs the io_context. Destroy it when that loop has
// ended.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "common/http/server.h"

namespace asio {
class io_context;
}

namespace ringmaster::health {

using HttpRequest = http::Request;
using HttpResponse = http::Response;

class HttpServer {
 public:
  static tl::expected<std::unique_ptr<HttpServer>, std::string> Listen(
      asio::io_context* loop, const std::string& host, int port,
      std::function<HttpResponse(const HttpRequest& request)> answer);
  virtual ~HttpServer() = default;
  virtual int port() const = 0;
  virtual void Stop() = 0;
};

}  // namespace ringmaster::health
