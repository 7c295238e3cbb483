// A small HTTP/1.1 server for GET on the sidecar's own loop: no second thread has to look at its
// state.
//
// Thread rule: everything on the thread that runs the io_context. Destroy it when that loop has
// ended.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace asio {
class io_context;
}

namespace ringmaster::health {

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

class HttpServer {
 public:
  // `answer` gets the path without its query.
  static std::unique_ptr<HttpServer> Listen(
      asio::io_context* loop, const std::string& host, int port,
      std::function<HttpResponse(const std::string& path)> answer, std::string* error);
  virtual ~HttpServer() = default;
  virtual int port() const = 0;
  virtual void Stop() = 0;
};

}  // namespace ringmaster::health
