#include "sidecar/health/http_server.h"

#include <asio/io_context.hpp>

#include "sidecar/net/address.h"

namespace ringmaster::health {
namespace {

class ServerOnTheLoop final : public HttpServer {
 public:
  explicit ServerOnTheLoop(std::unique_ptr<http::Server> server) : server_(std::move(server)) {}
  int port() const override { return server_->port(); }
  void Stop() override { server_->Stop(); }

 private:
  const std::unique_ptr<http::Server> server_;
};

}  // namespace

tl::expected<std::unique_ptr<HttpServer>, std::string> HttpServer::Listen(
    asio::io_context* loop, const std::string& host, int port,
    std::function<HttpResponse(const HttpRequest&)> answer) {
  asio::ip::tcp::acceptor acceptor(*loop);
  const auto listens = net::ListenOn(&acceptor, host, port, "RINGMASTER_HTTP_PORT");
  if (!listens) return tl::unexpected(listens.error());
  return std::make_unique<ServerOnTheLoop>(
      http::Server::Start(std::move(acceptor), std::move(answer)));
}

}  // namespace ringmaster::health
