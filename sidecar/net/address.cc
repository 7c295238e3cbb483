#include "sidecar/net/address.h"

#include <charconv>

namespace ringmaster::net {

using asio::ip::tcp;

std::optional<tcp::endpoint> ParseEndpoint(const std::string& address) {
  size_t colon = address.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  unsigned short port = 0;
  const char* end = address.data() + address.size();
  auto [stop, code] = std::from_chars(address.data() + colon + 1, end, port);
  if (code != std::errc() || stop != end || port == 0) return std::nullopt;
  std::error_code error;
  auto ip = asio::ip::make_address(host, error);
  if (error) return std::nullopt;
  return tcp::endpoint(ip, port);
}

std::string JoinAddress(const std::string& host, int port) {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

tl::expected<void, std::string> ListenOn(tcp::acceptor* acceptor, const std::string& host, int port,
                                         const char* variable) {
  std::error_code code;
  auto ip = asio::ip::make_address(host, code);
  if (code) {
    return tl::unexpected("RINGMASTER_BIND, or RINGMASTER_POD_IP without it, is '" + host +
                          "', an IP address is expected");
  }
  tcp::endpoint endpoint(ip, static_cast<unsigned short>(port));
  acceptor->open(endpoint.protocol(), code);
  if (!code) acceptor->set_option(tcp::acceptor::reuse_address(true), code);
  if (!code) acceptor->bind(endpoint, code);
  if (!code) acceptor->listen(asio::socket_base::max_listen_connections, code);
  if (!code) return {};
  return tl::unexpected("cannot listen on " + JoinAddress(host, port) + " (" + variable +
                        "): " + code.message());
}

}  // namespace ringmaster::net
