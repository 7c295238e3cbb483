// host:port, and listeners whose errors name the variable that chose the port.
#pragma once

#include <asio/ip/tcp.hpp>
#include <optional>
#include <string>
#include <tl/expected.hpp>

namespace ringmaster::net {

// Parses host:port, where the host is an IP address (of a pod, or loopback), so that no call waits
// for a name server. Nothing if `address` is anything else, or its port is 0.
std::optional<asio::ip::tcp::endpoint> ParseEndpoint(const std::string& address);

std::string JoinAddress(const std::string& host, int port);

// Opens, binds and listens. `variable` is the one that chose the port, for the error.
tl::expected<void, std::string> ListenOn(asio::ip::tcp::acceptor* acceptor, const std::string& host,
                                         int port, const char* variable);

}  // namespace ringmaster::net
