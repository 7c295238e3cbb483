#include "operator/page/ui_server.h"

#include <openssl/crypto.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <thread>

#include "common/ring_key/ring_key.h"
#include "operator/page/page_answers.h"

namespace ringmaster::page {
namespace {

using asio::ip::tcp;
using http::Request;

bool Same(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

class Server final : public UiServer {
 public:
  Server(Observatory* observatory)
      : observatory_(observatory), token_(ring_key::MakeToken(ring_key::MakeRandom())) {}

  ~Server() override {
    if (!thread_.joinable()) return;
    asio::post(loop_, [this] { server_->Stop(); });
    thread_.join();
  }

  // Returns an empty text if it listens.
  std::string Listen(int port) {
    const tcp::endpoint where(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port));
    tcp::acceptor acceptor(loop_);
    std::error_code error;
    acceptor.open(where.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(where, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (error) return "can't listen on 127.0.0.1:" + std::to_string(port) + ": " + error.message();
    server_ = http::Server::Start(std::move(acceptor), [this](const Request& request) {
      return PageAnswer(observatory_, request, [this](const Request& r) { return LetIn(r); });
    });
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
    return "";
  }

  std::string address() const override {
    return "http://127.0.0.1:" + std::to_string(port_) + "/?token=" + token_;
  }

 private:
  Admission LetIn(const Request& request) const {
    const std::string port = ":" + std::to_string(port_);
    const std::string host = request.Header("host");
    if (host != "127.0.0.1" + port && host != "localhost" + port) {
      return {.instead = Refusal(421, "this server is 127.0.0.1" + port + ", not '" + host + "'")};
    }
    // Browsers send a host's cookies to all its ports, so the name contains the port.
    const std::string cookie = "ringmaster_ui_" + std::to_string(port_);
    if (Same(request.Cookie(cookie), token_)) return {};
    if (!Same(request.Parameter("token"), token_)) {
      return {.instead = Refusal(
                  401, "Open the address that the command has printed: it ends with ?token=...")};
    }
    return {
        .instead = std::nullopt,
        .headers = {{"Set-Cookie", cookie + "=" + token_ + "; HttpOnly; SameSite=Strict; Path=/"}}};
  }

  Observatory* const observatory_;
  const std::string token_;
  asio::io_context loop_{1};
  std::unique_ptr<http::Server> server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

tl::expected<std::unique_ptr<UiServer>, std::string> UiServer::Start(Observatory* observatory,
                                                                     int port) {
  auto server = std::make_unique<Server>(observatory);
  if (std::string error = server->Listen(port); !error.empty()) return tl::unexpected(error);
  return server;
}

}  // namespace ringmaster::page
