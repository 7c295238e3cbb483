// Requests to the HTTP server of operator and sidecars, in pieces. Whatever is asked, the answer is
// one of HTTP or none, and only a GET or HEAD comes to what answers.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "common/http/server.h"

using ringmaster::http::Request;
using ringmaster::http::Response;
using ringmaster::http::Server;

namespace {

// One for all inputs: a client leaves nothing behind in it.
class World {
 public:
  World() {
    const asio::ip::tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
    server_ = Server::Start(asio::ip::tcp::acceptor(io_, any), [this](const Request& request) {
      ++answers_;
      return Response{request.path == "/" ? 200 : 404, "text/plain", request.path};
    });
  }

  std::string Ask(std::string_view bytes, std::size_t piece) {
    const int fd = Connect();
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      const std::string_view part = bytes.substr(at, piece);
      if (send(fd, part.data(), part.size(), MSG_NOSIGNAL) < 0) break;
      io_.poll();
    }
    shutdown(fd, SHUT_WR);
    std::string answer;
    char buffer[4096];
    for (ssize_t n = -1; n != 0;) {
      io_.poll();
      n = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (n > 0) answer.append(buffer, static_cast<std::size_t>(n));
      if (n < 0 && errno != EAGAIN) break;
    }
    close(fd);
    io_.poll();
    return answer;
  }

  int TakeAnswers() { return std::exchange(answers_, 0); }

 private:
  int Connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const linger reset{1, 0};  // else the machine would run out of ports
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
    return fd;
  }

  asio::io_context io_;
  int answers_ = 0;
  std::unique_ptr<Server> server_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static World world;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string answer = world.Ask(bytes, data[0] * 8u + 1);
  if (!answer.empty() && !answer.starts_with("HTTP/1.1 ")) std::abort();
  const int answers = world.TakeAnswers();
  const bool asked = bytes.find("GET") != bytes.npos || bytes.find("HEAD") != bytes.npos;
  if (answers > 1 || (answers == 1 && !asked)) std::abort();
  return 0;
}
