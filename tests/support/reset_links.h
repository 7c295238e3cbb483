// Connections that break under two processes that live, as when something between them forgets the
// connection and answers with resets.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ringmaster::support {

// Resets every established TCP connection of this process; listeners stay. Returns how many.
inline int ResetTcpConnections() {
  int resets = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t length = sizeof(peer);
    const bool connected = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0;
    if (!connected || peer.sin_family != AF_INET) continue;
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC;
    if (connect(fd, &nobody, sizeof(nobody)) == 0) ++resets;
  }
  return resets;
}

}  // namespace ringmaster::support
