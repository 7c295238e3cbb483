#include "sidecar/app/probe.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "sidecar/app/ports_file.h"
#include "sidecar/net/address.h"

namespace ringmaster::app {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

std::string Probe(const SidecarOptions& options, const std::string& path,
                  std::chrono::seconds limit) {
  const int port = PortsFile(options.state_dir, options.pod_uid).Load().http;
  if (port == 0) return "the sidecar does not listen yet";
  const std::string where = net::JoinAddress(options.advertise, port);
  const auto endpoint = net::ParseEndpoint(where);
  if (!endpoint) return where + " is no address";
  const Descriptor socket{::socket(endpoint->protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const timeval time{static_cast<time_t>(limit.count()), 0};
  setsockopt(socket.fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  setsockopt(socket.fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);  // connect, too
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: sidecar\r\n\r\n";
  if (connect(socket.fd, endpoint->data(), static_cast<socklen_t>(endpoint->size())) != 0 ||
      send(socket.fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return where + " can't be reached";
  }
  char buffer[512];  // all of a small answer, and it comes at once
  const ssize_t got = recv(socket.fd, buffer, sizeof buffer, 0);
  const std::string answer(buffer, got > 0 ? static_cast<size_t>(got) : 0);
  if (answer.rfind("HTTP/1.1 200", 0) == 0) return "";
  return answer.empty() ? where + " does not answer" : answer.substr(0, answer.find('\r'));
}

}  // namespace ringmaster::app
