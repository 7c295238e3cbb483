#include "common/http/fetch.h"

#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <charconv>
#include <system_error>

namespace ringmaster::http {
namespace {

using asio::ip::tcp;

std::optional<tcp::endpoint> Parse(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  unsigned short port = 0;
  const char* const end = address.data() + address.size();
  const auto number = std::from_chars(address.data() + colon + 1, end, port);
  std::error_code error;
  const auto ip = asio::ip::make_address(host, error);
  if (error || number.ec != std::errc() || number.ptr != end) return std::nullopt;
  return tcp::endpoint(ip, port);
}

// What follows the head of an answer with status 200. The server has closed the connection after
// it, so it is whole.
std::optional<std::string> BodyOf(const std::string& answer) {
  const std::size_t head = answer.find("\r\n\r\n");
  if (head == std::string::npos || !answer.starts_with("HTTP/1.") ||
      answer.compare(8, 5, " 200 ") != 0) {
    return std::nullopt;
  }
  return answer.substr(head + 4);
}

}  // namespace

namespace {

std::optional<std::string> FetchFrom(const tcp::endpoint& where, const std::string& address,
                                     const std::string& path, const FetchOptions& options) {
  std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\n";
  for (const auto& [name, value] : options.headers) request += name + ": " + value + "\r\n";
  request += "Connection: close\r\n\r\n";
  std::string answer;
  bool whole = false;
  asio::io_context loop(1);
  tcp::socket socket(loop);
  socket.async_connect(where, [&](std::error_code not_connected) {
    if (not_connected) return;
    asio::async_write(socket, asio::buffer(request), [&](std::error_code not_sent, std::size_t) {
      if (not_sent) return;
      asio::async_read(
          socket, asio::dynamic_buffer(answer, options.most_bytes),
          [&](std::error_code ended, std::size_t) { whole = ended == asio::error::eof; });
    });
  });
  loop.run_for(options.deadline);
  return whole ? BodyOf(answer) : std::nullopt;
}

}  // namespace

std::optional<std::string> Fetch(const std::string& address, const std::string& path,
                                 const FetchOptions& options) {
  const auto where = Parse(address);
  if (!where) return std::nullopt;
  try {
    return FetchFrom(*where, address, path, options);
  } catch (const std::system_error&) {
    return std::nullopt;  // a loop needs files of its own, and this process may have too many open
  }
}

}  // namespace ringmaster::http
