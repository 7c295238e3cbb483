// A small HTTP/1.1 server for GET, plain or over TLS. No client can use up what the others need: a
// connection carries one request without a body and has a deadline from accept to close, and when
// there are too many connections the oldest that has not sent its request yet is closed (the oldest
// of all, where all have sent theirs). An answer may go on as a stream (server-sent events): the
// number of streams is bounded, each ends after a while, and a stream whose client does not read
// ends too.
//
// Thread rule: use it only on the thread that runs the acceptor's io_context. Destroy it when that
// loop has ended, or on its thread after Stop.
#pragma once

#include <asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::http {

struct Request {
  std::string path;                               // without its query
  std::map<std::string, std::string> headers;     // by name, in lower case; the first of each
  std::map<std::string, std::string> query = {};  // decoded; the first of each name
  bool head = false;  // a HEAD request: neither the answer's body nor its stream is sent

  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  // Empty: the request has no header of that name.
  std::string Cookie(const std::string& name) const {
    const std::string cookies = "; " + Header("cookie");
    const std::string before = "; " + name + "=";
    const auto at = cookies.find(before);
    if (at == std::string::npos) return "";
    const auto begin = at + before.size();
    return cookies.substr(begin, cookies.find(';', begin) - begin);
  }
  std::string Parameter(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  // For an answer that goes on after `body`: called again and again for what follows. An empty
  // text: nothing yet, it is called again at the next tick; nullopt: that was all.
  std::function<std::optional<std::string>()> next = nullptr;
};

struct ServerLimits {
  std::size_t connections = 128;
  std::size_t request_bytes = 16384;
  // For a request with its answer, and for each write of a stream.
  std::chrono::milliseconds deadline{10'000};
  std::size_t streams = 32;  // answers that go on; more are refused with status 503
  std::chrono::milliseconds stream_life{600'000};
  std::chrono::milliseconds tick{200};
};

// PEM texts; the first certificate is the server's.
struct Certificate {
  std::string certificates_pem;
  std::string key_pem;
};

class Server {
 public:
  using Answer = std::function<Response(const Request& request)>;

  // `acceptor` must listen already.
  static std::unique_ptr<Server> Start(asio::ip::tcp::acceptor acceptor, Answer answer,
                                       const ServerLimits& limits = {});
  // Over TLS. Null: the certificate or its key can't be used.
  static std::unique_ptr<Server> StartTls(asio::ip::tcp::acceptor acceptor, Answer answer,
                                          const Certificate& certificate,
                                          const ServerLimits& limits = {});
  virtual ~Server() = default;
  virtual int port() const = 0;
  virtual void Stop() = 0;
};

}  // namespace ringmaster::http
