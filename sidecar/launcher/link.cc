#include "sidecar/launcher/link.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace ringmaster::launcher {
namespace {

constexpr std::chrono::milliseconds kFirstBackoff{50}, kLastBackoff{1000};
constexpr size_t kMaxPending =
    4096;  // exits to tell; a launcher that restarts that often has other troubles

}  // namespace

Link::Link(std::string path, std::function<std::string()> greet,
           std::function<void(const nlohmann::json&)> receive)
    : path_(std::move(path)), greet_(std::move(greet)), receive_(std::move(receive)) {}

Link::~Link() {
  if (fd_ >= 0) close(fd_);
}

void Link::Send(const nlohmann::json& frame) {
  if (path_.empty()) return;
  pending_.push_back(worker_link::EncodeFrame(frame));
  if (pending_.size() > kMaxPending) pending_.pop_front();
}

void Link::Poll(Clock::time_point now) {
  if (path_.empty()) return;
  if (fd_ < 0 && now >= retry_at_) Connect(now);
  if (fd_ >= 0) Read(now);
  if (fd_ >= 0) Write(now);
}

bool Link::IsRead() const {
  if (fd_ < 0) return true;
  int unread = 0;  // of a unix socket: what its peer has not read
  return writing_.empty() && pending_.empty() && ioctl(fd_, SIOCOUTQ, &unread) == 0 && unread == 0;
}

short Link::events() const {
  return static_cast<short>(POLLIN | (writing_.empty() && pending_.empty() ? 0 : POLLOUT));
}

Link::Clock::time_point Link::wake_at() const {
  return fd_ >= 0 || path_.empty() ? Clock::time_point::max() : retry_at_;
}

void Link::Connect(Clock::time_point now) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), std::min(path_.size(), sizeof address.sun_path - 1));
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0 || connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    Close(now);
    return;
  }
  ++connections_;
  backoff_ = kFirstBackoff;
  reader_ = {};
  writing_ = greet_();
}

void Link::Write(Clock::time_point now) {
  while (true) {
    if (writing_.empty()) {
      if (pending_.empty()) return;
      writing_ = std::move(pending_.front());
      pending_.pop_front();
    }
    ssize_t sent = send(fd_, writing_.data(), writing_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) Close(now);
      return;
    }
    writing_.erase(0, sent);
  }
}

void Link::Read(Clock::time_point now) {
  char buffer[16384];
  while (fd_ >= 0) {
    ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return Close(now);
    reader_.Feed({buffer, static_cast<size_t>(got)});
    nlohmann::json frame;
    worker_link::FrameReader::Result result;
    while ((result = reader_.Next(&frame)) == worker_link::FrameReader::Result::kFrame) {
      receive_(frame);
    }
    if (result == worker_link::FrameReader::Result::kError) return Close(now);
  }
}

void Link::Drop(Clock::time_point now) {
  pending_.clear();
  Close(now);
}

void Link::Close(Clock::time_point now) {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  writing_.clear();
  retry_at_ = now + backoff_;
  backoff_ = std::min(backoff_ * 2, kLastBackoff);
}

}  // namespace ringmaster::launcher
