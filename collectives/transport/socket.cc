#include "collectives/transport/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ringmaster::transport {
namespace {

constexpr int kBacklog = 1024;

// Between two processes of one machine the kernel copies what is sent into pages and out of them
// again. A small send buffer keeps these pages few enough to stay in the caches: allreduces of 16
// MiB then take two thirds of the time. It must not be smaller than this: the kernel's limit is
// twice the size, and unless several of loopback's 64 KiB segments fit into that, each waits for a
// delayed acknowledgement (40 ms).
constexpr int kSendBufferToItself = 128 << 10;

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

bool SplitHostPort(const std::string& text, std::string* host, std::string* port) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return false;
  *host = text.substr(0, colon);
  *port = text.substr(colon + 1);
  if (host->size() >= 2 && host->front() == '[' && host->back() == ']') {
    *host = host->substr(1, host->size() - 2);
  } else if (host->find(':') != std::string::npos) {
    return false;  // an IPv6 address without brackets: its end and the port can't be told apart
  }
  return !host->empty();
}

Status Resolve(const std::string& host_port, SocketAddress* out) {
  std::string host, port;
  if (!SplitHostPort(host_port, &host, &port)) {
    return Status(RM_ERR_INVALID,
                  "address '" + host_port + "' is not host:port or [IPv6 address]:port");
  }
  bool digits = port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(port) > 65535) {
    return Status(RM_ERR_INVALID, "address '" + host_port + "': the port must be 0 to 65535");
  }
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  // The address is first read as a numeric one, as those of pods are: then no name service is
  // asked, and this can't block.
  hints.ai_flags |= AI_NUMERICHOST;
  int rc = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (rc == EAI_NONAME) {
    hints.ai_flags &= ~AI_NUMERICHOST;
    rc = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  }
  if (rc != 0) {
    return Status(RM_ERR_INVALID, "address '" + host_port + "': " + gai_strerror(rc));
  }
  std::memcpy(&out->storage, found->ai_addr, found->ai_addrlen);
  out->length = found->ai_addrlen;
  freeaddrinfo(found);
  return Status();
}

// The numeric address that is bound. A name could lead peers to another address.
std::string AddressText(const SocketAddress& address) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(address.get(), address.length, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  const bool v6 = address.storage.ss_family == AF_INET6;
  return (v6 ? "[" + std::string(host) + "]" : host) + ":" + port;
}

bool AbstractAddress(const std::string& name, SocketAddress* out) {
  auto* un = reinterpret_cast<sockaddr_un*>(&out->storage);
  if (name.empty() || name.size() + 1 > sizeof(un->sun_path)) return false;
  un->sun_family = AF_UNIX;
  std::memcpy(un->sun_path + 1, name.data(), name.size());
  out->length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return true;
}

Status Dial(const SocketAddress& address, UniqueFd* out, DialResult* result) {
  UniqueFd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) {
    const bool own = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    *result = own ? DialResult::kNoDescriptor : DialResult::kFailed;
    return ErrnoStatus("socket");
  }
  const int rc = connect(fd.get(), address.get(), address.length);
  const int error = rc == 0 ? 0 : errno;
  if (error == 0 || error == EINPROGRESS) {
    *out = std::move(fd);
    *result = error == 0 ? DialResult::kConnected : DialResult::kInProgress;
    return Status();
  }
  out->Reset();
  *result = error == ECONNREFUSED ? DialResult::kRefused
            : error == EAGAIN     ? DialResult::kBusy
                                  : DialResult::kFailed;
  return Status(RM_ERR_UNAVAILABLE, strerror(error));
}

}  // namespace

Status ErrnoStatus(const std::string& what) {
  return Status(RM_ERR_UNAVAILABLE, what + ": " + strerror(errno));
}

int PollMillis(Clock::time_point deadline, int most) {
  auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count() + 1;
  return static_cast<int>(std::clamp<int64_t>(left, 0, most));
}

Status ListenTcp(const std::string& host_port, UniqueFd* out, std::string* address) {
  SocketAddress where;
  Status status = Resolve(host_port, &where);
  if (!status.ok()) return status;
  UniqueFd fd(socket(where.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus("socket");
  int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), where.get(), where.length) != 0) return ErrnoStatus("bind to " + host_port);
  if (listen(fd.get(), kBacklog) != 0) return ErrnoStatus("listen on " + host_port);
  SocketAddress bound;
  bound.length = sizeof(bound.storage);
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0) {
    return ErrnoStatus("getsockname of " + host_port);
  }
  *address = AddressText(bound);
  *out = std::move(fd);
  return Status();
}

Status ListenUnix(const std::string& name, UniqueFd* out) {
  SocketAddress where;
  if (!AbstractAddress(name, &where)) {
    return Status(RM_ERR_INVALID, "abstract socket name '" + name + "' must have 1 to 107 bytes");
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus("unix socket");
  if (bind(fd.get(), where.get(), where.length) != 0) return ErrnoStatus("bind to @" + name);
  if (listen(fd.get(), kBacklog) != 0) return ErrnoStatus("listen on @" + name);
  *out = std::move(fd);
  return Status();
}

Status DialTcp(const std::string& host_port, UniqueFd* out, DialResult* result) {
  *result = DialResult::kFailed;
  SocketAddress where;
  Status status = Resolve(host_port, &where);
  if (!status.ok()) return status;
  status = Dial(where, out, result);
  if (out->valid()) SetUpTcp(out->get());
  return status;
}

Status DialUnix(const std::string& name, UniqueFd* out, DialResult* result) {
  *result = DialResult::kFailed;
  SocketAddress where;
  if (!AbstractAddress(name, &where)) {
    return Status(RM_ERR_INVALID, "bad abstract socket name '" + name + "'");
  }
  return Dial(where, out, result);
}

Status DialFinished(int fd, DialResult* result) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  *result = error == 0              ? DialResult::kConnected
            : error == ECONNREFUSED ? DialResult::kRefused
                                    : DialResult::kFailed;
  return error == 0 ? Status() : Status(RM_ERR_UNAVAILABLE, strerror(error));
}

namespace {

// Compares the addresses without their ports.
bool SameHost(const SocketAddress& a, const SocketAddress& b) {
  if (a.storage.ss_family != b.storage.ss_family) return false;
  if (a.storage.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(&a.storage)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(&b.storage)->sin_addr.s_addr;
  }
  return a.storage.ss_family == AF_INET6 &&
         IN6_ARE_ADDR_EQUAL(&reinterpret_cast<const sockaddr_in6*>(&a.storage)->sin6_addr,
                            &reinterpret_cast<const sockaddr_in6*>(&b.storage)->sin6_addr);
}

bool IsToItself(int fd) {
  SocketAddress own, peer;
  own.length = peer.length = sizeof(sockaddr_storage);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own.storage), &own.length) == 0 &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) == 0 &&
         SameHost(own, peer);
}

}  // namespace

void SetUpTcp(int fd) {
  const int on = 1, idle_seconds = 30, interval_seconds = 10;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // Steps may be minutes apart, and firewalls and address translators between two nodes forget idle
  // connections.
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof(interval_seconds));
  // Until the connection is made, this can't be told: then the buffer grows as needed.
  if (!IsToItself(fd)) return;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBufferToItself, sizeof(kSendBufferToItself));
}

bool SameUser(int unix_fd) {
  ucred peer = {};
  socklen_t length = sizeof(peer);
  if (getsockopt(unix_fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == geteuid();
}

bool SendSmall(int fd, const void* data, size_t bytes, int attached_fd) {
  iovec part{const_cast<void*>(data), bytes};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (attached_fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &attached_fd, sizeof(int));
  }
  while (true) {
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    return sent == static_cast<ssize_t>(bytes);
  }
}

IoResult RecvSmall(int fd, void* data, size_t bytes, size_t* got, UniqueFd* attached) {
  while (*got < bytes) {
    iovec part{static_cast<char*>(data) + *got, bytes - *got};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    ssize_t rc = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (rc < 0 && errno == EINTR) continue;
    if (rc < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return IoResult::kAgain;
    if (rc <= 0) return IoResult::kClosed;
    for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
      if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
      // A peer may send several, of which more than one can fit.
      for (size_t at = CMSG_LEN(0); at + sizeof(int) <= h->cmsg_len; at += sizeof(int)) {
        int received = -1;
        std::memcpy(&received, reinterpret_cast<const char*>(h) + at, sizeof(int));
        UniqueFd owned(received);
        if (attached != nullptr) *attached = std::move(owned);
      }
    }
    *got += static_cast<size_t>(rc);
  }
  return IoResult::kDone;
}

bool UnixListenerExists(const std::string& name) {
  UniqueFd fd;
  DialResult result;
  if (DialUnix(name, &fd, &result).ok()) return result == DialResult::kConnected;
  return result == DialResult::kBusy || result == DialResult::kNoDescriptor;
}

bool WaitFor(int fd, short events, Clock::time_point deadline) {
  pollfd entry{fd, events, 0};
  while (true) {
    int left = PollMillis(deadline, 1000);
    int rc = poll(&entry, 1, left);
    if (rc > 0) return true;
    if (rc == 0 && Clock::now() >= deadline) return false;
    if (rc < 0 && errno != EINTR) return false;
  }
}

}  // namespace ringmaster::transport
