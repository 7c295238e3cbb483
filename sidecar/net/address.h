// host:port, and listeners whose errors name the variable that chose the port.
#pragma once

#include <asio/ip/tcp.hpp>
#include <string>
#include <tl/expected.hpp>

namespace ringmaster::net {

// Numeric hosts only (pod IPs, loopback): nothing here waits for a name server.
bool ParseEndpoint(const std::string& address, asio::ip::tcp::endpoint* endpoint);

std::string JoinAddress(const std::string& host, int port);

// Opens, binds and listens. `variable` is the one that chose the port, for the error.
tl::expected<void, std::string> ListenOn(asio::ip::tcp::acceptor* acceptor, const std::string& host,
                                         int port, const char* variable);

}  // namespace ringmaster::net
