#include "sidecar/health/http_server.h"

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <istream>
#include <vector>

#include "sidecar/net/address.h"

namespace ringmaster::health {
namespace {

using asio::ip::tcp;

constexpr size_t kMaxRequest = 16384;
constexpr std::chrono::seconds kDeadline{10};

const char* StatusText(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

// One request, then closed: its clients (kubelet, Prometheus, the command line) ask seldom.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const std::function<HttpResponse(const std::string&)>* answer)
      : socket_(std::move(socket)),
        timer_(socket_.get_executor()),
        answer_(answer),
        request_(kMaxRequest) {}

  void Start() {
    timer_.expires_after(kDeadline);
    timer_.async_wait([self = shared_from_this()](std::error_code error) {
      if (!error) self->Close();
    });
    asio::async_read_until(
        socket_, request_, "\r\n\r\n", [self = shared_from_this()](std::error_code error, size_t) {
          if (self->closed_) return;
          if (error && error != asio::error::not_found) return self->Close();
          self->Respond(error ? HttpResponse{400, "text/plain", "request too large\n"}
                              : self->Answer());
        });
  }

  void Close() {
    closed_ = true;
    timer_.cancel();
    std::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

 private:
  HttpResponse Answer() {
    std::istream in(&request_);
    std::string method, target, version;
    in >> method >> target >> version;
    if (version.rfind("HTTP/1.", 0) != 0) return {400, "text/plain", "not HTTP/1\n"};
    head_ = method == "HEAD";
    if (method != "GET" && !head_) return {405, "text/plain", "only GET is served\n"};
    return (*answer_)(target.substr(0, target.find('?')));
  }

  void Respond(const HttpResponse& response) {
    text_ = "HTTP/1.1 " + std::to_string(response.status) + " " + StatusText(response.status) +
            "\r\nContent-Type: " + response.content_type +
            "\r\nContent-Length: " + std::to_string(response.body.size()) +
            "\r\nConnection: close\r\n\r\n";
    if (!head_) text_ += response.body;
    asio::async_write(socket_, asio::buffer(text_),
                      [self = shared_from_this()](std::error_code, size_t) { self->Close(); });
  }

  tcp::socket socket_;
  asio::steady_timer timer_;
  const std::function<HttpResponse(const std::string&)>* const answer_;
  asio::streambuf request_;
  std::string text_;
  bool head_ = false, closed_ = false;
};

class Server final : public HttpServer {
 public:
  Server(asio::io_context* loop, std::function<HttpResponse(const std::string&)> answer)
      : acceptor_(*loop), retry_(*loop), answer_(std::move(answer)) {}
  ~Server() override { Stop(); }

  bool Open(const std::string& host, int port, std::string* error) {
    if (!net::ListenOn(&acceptor_, host, port, "RINGMASTER_HTTP_PORT", error)) return false;
    Accept();
    return true;
  }

  int port() const override {
    std::error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

  void Stop() override {
    std::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
    for (auto& weak : sessions_) {
      if (auto session = weak.lock()) session->Close();
    }
    sessions_.clear();
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) {
        retry_.expires_after(std::chrono::milliseconds(100));
        retry_.async_wait([this](std::error_code cancelled) {
          if (!cancelled) Accept();
        });
        return;
      }
      auto session = std::make_shared<Session>(std::move(socket), &answer_);
      std::erase_if(sessions_, [](const auto& weak) { return weak.expired(); });
      sessions_.push_back(session);
      session->Start();
      Accept();
    });
  }

  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  const std::function<HttpResponse(const std::string&)> answer_;
  std::vector<std::weak_ptr<Session>> sessions_;
};

}  // namespace

std::unique_ptr<HttpServer> HttpServer::Listen(
    asio::io_context* loop, const std::string& host, int port,
    std::function<HttpResponse(const std::string&)> answer, std::string* error) {
  auto server = std::make_unique<Server>(loop, std::move(answer));
  if (!server->Open(host, port, error)) return nullptr;
  return server;
}

}  // namespace ringmaster::health
