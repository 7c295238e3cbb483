#include "collectives/sidecar_client/frame_connection.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "collectives/fork_guard/fork_guard.h"

namespace ringmaster::sidecar_client {

using worker_link::FrameReader;

Status FrameConnection::Open(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return {RM_ERR_UNAVAILABLE, "can't connect to " + path + ": " + why};
  }
  fd_ = fd;
  fork_guard::Own(fd_);
  reader_ = {};
  return {};
}

void FrameConnection::Close() {
  out_.clear();
  if (fd_ < 0) return;
  fork_guard::Disown(fd_);
  close(fd_);
  fd_ = -1;
}

Status FrameConnection::Write() {
  while (!out_.empty()) {
    const ssize_t n = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (n > 0) {
      out_.erase(0, n);
    } else if (errno == EAGAIN) {
      return {};
    } else if (errno != EINTR) {
      return {RM_ERR_UNAVAILABLE, std::string("write to the sidecar: ") + std::strerror(errno)};
    }
  }
  return {};
}

Status FrameConnection::Read(const std::function<void(const nlohmann::json&)>& handle) {
  char buffer[65536];
  while (true) {
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return {};
    if (n <= 0) {
      return {RM_ERR_UNAVAILABLE,
              n == 0 ? "the sidecar closed the connection" : std::strerror(errno)};
    }
    reader_.Feed({buffer, static_cast<size_t>(n)});
    if (Status s = HandleFrames(handle); !s.ok()) return s;
  }
}

Status FrameConnection::HandleFrames(const std::function<void(const nlohmann::json&)>& handle) {
  nlohmann::json frame;
  FrameReader::Result result;
  while ((result = reader_.Next(&frame)) == FrameReader::Result::kFrame) handle(frame);
  if (result != FrameReader::Result::kError) return {};
  return {RM_ERR_UNAVAILABLE, "the sidecar sent no frame: " + reader_.error()};
}

}  // namespace ringmaster::sidecar_client
