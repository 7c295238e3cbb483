// A small HTTP/1.1 server for GET, plain or over TLS. It owes its clients nothing that one of them
// could use up: a connection carries one request without a body, has a deadline from accept to
// close, and when there are too many the oldest that has not sent its request yet goes.
//
// Thread rule: everything on the thread that runs the acceptor's io_context. Destroy it when that
// loop has ended, or on it after Stop.
#pragma once

#include <asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace ringmaster::http {

struct Request {
  std::string path;                            // without its query
  std::map<std::string, std::string> headers;  // by name, in lower case; the first of each

  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

struct Limits {
  std::size_t connections = 128;
  std::size_t request_bytes = 16384;
  std::chrono::milliseconds deadline{10'000};
};

// PEM texts; the first certificate is the server's.
struct Certificate {
  std::string certificates_pem;
  std::string key_pem;
};

class Server {
 public:
  using Answer = std::function<Response(const Request& request)>;

  // `acceptor` listens already.
  static std::unique_ptr<Server> Start(asio::ip::tcp::acceptor acceptor, Answer answer,
                                       const Limits& limits = {});
  // Over TLS. Null: the certificate or its key can't be used.
  static std::unique_ptr<Server> StartTls(asio::ip::tcp::acceptor acceptor, Answer answer,
                                          const Certificate& certificate,
                                          const Limits& limits = {});
  virtual ~Server() = default;
  virtual int port() const = 0;
  virtual void Stop() = 0;
};

}  // namespace ringmaster::http
