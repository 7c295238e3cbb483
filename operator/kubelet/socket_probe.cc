#include "operator/kubelet/socket_probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace ringmaster::kubelet {
namespace {

using Clock = std::chrono::steady_clock;

bool Ready(int fd, short what, Clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd p{fd, what, 0};
  return left > 0 && poll(&p, 1, static_cast<int>(left)) == 1;
}

bool Connected(int fd, const sockaddr_in& address, Clock::time_point deadline) {
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
  if (errno != EINPROGRESS || !Ready(fd, POLLOUT, deadline)) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

bool HttpAnswersWell(int fd, const std::string& host, const std::string& path,
                     Clock::time_point deadline) {
  std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + host +
                        "\r\nUser-Agent: kube-probe\r\nConnection: close\r\n\r\n";
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return false;
  }
  std::string head;
  while (head.size() < 12) {  // "HTTP/1.1 200"
    char buffer[256];
    if (!Ready(fd, POLLIN, deadline)) return false;
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    head.append(buffer, static_cast<size_t>(n));
  }
  int status = std::atoi(head.c_str() + 9);
  return status >= 200 && status < 400;
}

}  // namespace

bool ProbeSocket(const std::string& host_port, const std::string& path,
                 std::chrono::milliseconds timeout) {
  auto deadline = Clock::now() + timeout;
  size_t colon = host_port.rfind(':');
  if (colon == std::string::npos) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(host_port.c_str() + colon + 1)));
  if (inet_pton(AF_INET, host_port.substr(0, colon).c_str(), &address.sin_addr) != 1) return false;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  bool passed = Connected(fd, address, deadline) &&
                (path.empty() || HttpAnswersWell(fd, host_port, path, deadline));
  close(fd);
  return passed;
}

}  // namespace ringmaster::kubelet
