#include "operator/app/http_endpoints.h"

#include <fmt/format.h>

#include <asio/io_context.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/post.hpp>
#include <thread>

#include "common/tls/certificate.h"
#include "operator/app/setting_texts.h"

namespace ringmaster::app {
namespace {

using asio::ip::tcp;

class Endpoints final : public HttpEndpoints {
 public:
  Endpoints(http::Server::Answer answer, std::optional<http::Certificate> certificate)
      : answer_(std::move(answer)), certificate_(std::move(certificate)) {}
  ~Endpoints() override { Stop(); }

  // Returns an empty text, or why it can't listen.
  std::string Open(const HostPort& where) {
    tcp::acceptor acceptor(loop_);
    const std::error_code error = ListenOn(&acceptor, where);
    if (error) return error.message();
    server_ = certificate_ ? http::Server::StartTls(std::move(acceptor), answer_, *certificate_)
                           : http::Server::Start(std::move(acceptor), answer_);
    if (server_ == nullptr) return "its certificate can't be used";
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
    return "";
  }
  int port() const override { return port_; }
  void Stop() override {
    if (!thread_.joinable()) return;
    asio::post(loop_, [this] { server_->Stop(); });
    thread_.join();
  }

 private:
  std::error_code ListenOn(tcp::acceptor* acceptor, const HostPort& where) {
    std::error_code error;
    // All IPv4 addresses means those of IPv6 too: a kubelet probes a pod at an address of the
    // cluster's family.
    const tcp::endpoint all(tcp::v6(), static_cast<unsigned short>(where.port));
    if (where.host == "0.0.0.0" && !TryOn(acceptor, all)) return {};
    tcp::resolver resolver(loop_);
    const auto places =
        resolver.resolve(where.host, std::to_string(where.port), tcp::resolver::passive, error);
    if (error) return error;
    for (const auto& place : places) {
      error = TryOn(acceptor, place.endpoint());
      if (!error) return {};
    }
    return error;
  }

  static std::error_code TryOn(tcp::acceptor* acceptor, const tcp::endpoint& endpoint) {
    const std::error_code error = ListenOn(acceptor, endpoint);
    std::error_code ignored;
    if (error) acceptor->close(ignored);
    return error;
  }

  static std::error_code ListenOn(tcp::acceptor* acceptor, const tcp::endpoint& endpoint) {
    std::error_code error;
    acceptor->open(endpoint.protocol(), error);
    if (error) return error;
    std::error_code ignored;
    if (endpoint.address().is_v6()) acceptor->set_option(asio::ip::v6_only(false), ignored);
    acceptor->set_option(tcp::acceptor::reuse_address(true), ignored);
    acceptor->bind(endpoint, error);
    if (!error) acceptor->listen(tcp::acceptor::max_listen_connections, error);
    return error;
  }

  const http::Server::Answer answer_;
  const std::optional<http::Certificate> certificate_;
  asio::io_context loop_{1};
  std::unique_ptr<http::Server> server_;
  int port_ = -1;
  std::thread thread_;
};

HttpAnswer AnswerOf(const HttpEndpoints::Answers& answers, const http::Request& request) {
  const auto answer = answers.find(request.path);
  if (answer != answers.end()) return answer->second();
  std::string paths;
  for (const auto& [known, answer] : answers) paths += known + " ";
  return {.status = 404, .body = "there is " + paths + "\n"};
}

constexpr std::chrono::hours kCertificateHolds{24 * 3650};

}  // namespace

http::Certificate HttpEndpoints::OwnCertificate(const std::string& name) {
  const auto now = std::chrono::system_clock::now();
  const auto authority = tls::MakeAuthority(now, kCertificateHolds);
  if (!authority) return {};
  const auto own = tls::Issue(*authority, {name}, now, kCertificateHolds);
  return own ? http::Certificate{own->certificate_pem, own->key_pem} : http::Certificate();
}

kube::Result<std::unique_ptr<HttpEndpoints>> HttpEndpoints::Listen(const std::string& flag,
                                                                   const std::string& host_port,
                                                                   Answers answers,
                                                                   Protection protection) {
  const auto answer = [answers = std::move(answers),
                       refuse = std::move(protection.refuse)](const http::Request& request) {
    auto refusal = refuse ? refuse(request) : std::nullopt;
    return refusal ? *refusal : AnswerOf(answers, request);
  };
  return Listen(flag, host_port, answer, std::move(protection.certificate));
}

kube::Result<std::unique_ptr<HttpEndpoints>> HttpEndpoints::Listen(
    const std::string& flag, const std::string& host_port, http::Server::Answer answer,
    std::optional<http::Certificate> certificate) {
  const auto fail = [&](kube::ErrorCode code, const std::string& why) {
    return tl::unexpected(kube::Error{
        .code = code,
        .message = fmt::format("{}: can't listen on \"{}\": {}", flag, host_port, why)});
  };
  const auto where = ParseHostPort(host_port);
  if (!where) return fail(kube::ErrorCode::kInvalid, where.error());
  auto endpoints = std::make_unique<Endpoints>(std::move(answer), std::move(certificate));
  if (const std::string why = endpoints->Open(*where); !why.empty())
    return fail(kube::ErrorCode::kUnavailable, why);
  return endpoints;
}

}  // namespace ringmaster::app
