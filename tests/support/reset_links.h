// Connections that break under two processes that live, as when something between them forgets the
// connection and answers with resets.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

namespace ringmaster::support {

// Resets every established TCP connection of this process; listeners stay. Returns how many.
inline int ResetTcpConnections() {
  // All are found first: whoever sees the first reset may open a connection to look after the
  // other.
  std::vector<int> connected;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t length = sizeof(peer);
    const bool is = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
    if (is && peer.sin_family == AF_INET) connected.push_back(fd);
  }
  int resets = 0;
  for (int fd : connected) {
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC;
    if (connect(fd, &nobody, sizeof(nobody)) == 0) ++resets;
  }
  return resets;
}

}  // namespace ringmaster::support
