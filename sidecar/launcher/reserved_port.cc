#include "sidecar/launcher/reserved_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ringmaster::launcher {

ReservedPort::ReservedPort(const std::string& host) {
  sockaddr_in6 six{};
  sockaddr_in four{};
  const bool is_six = inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1;
  if (!is_six && inet_pton(AF_INET, host.c_str(), &four.sin_addr) != 1) {
    error_ = "RINGMASTER_BIND_WORKER is '" + host + "', an IP address is expected";
    return;
  }
  six.sin6_family = AF_INET6;
  four.sin_family = AF_INET;
  auto* address = is_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  socklen_t length = is_six ? sizeof six : sizeof four;
  const int on = 1;
  fd_ = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0 || setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd_, address, length) != 0 || getsockname(fd_, address, &length) != 0) {
    error_ = "no free port on " + host + ": " + std::strerror(errno);
    return;
  }
  const int port = ntohs(is_six ? six.sin6_port : four.sin_port);
  address_ = (is_six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

ReservedPort::~ReservedPort() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace ringmaster::launcher
