#include "collectives/sidecar_client/sidecar_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "collectives/fork_guard/fork_guard.h"
#include "common/worker_link/frame.h"

namespace ringmaster::sidecar_client {
namespace {

using worker_link::EncodeFrame;
using worker_link::FrameReader;

constexpr int kFirstWaitMs = 50;
constexpr int kLastWaitMs = 1000;

int64_t BootMs() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

}  // namespace

SidecarClient::SidecarClient(Options options, SidecarHandler* handler)
    : options_(std::move(options)),
      handler_(handler),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      heartbeat_(options_.ping_ms, options_.fence_ms) {
  fork_guard::Own(wake_);
}

void SidecarClient::Start() {
  thread_ = std::thread([this] { Loop(); });
}

SidecarClient::~SidecarClient() {
  {
    sync::MutexLock lock(&mu_);
    closing_ = true;
  }
  eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  CloseSocket();
  fork_guard::Disown(wake_);
  close(wake_);
}

void SidecarClient::Send(const nlohmann::json& frame) {
  std::string bytes = EncodeFrame(frame);
  {
    sync::MutexLock lock(&mu_);
    queue_.push_back(std::move(bytes));
  }
  eventfd_write(wake_, 1);
}

bool SidecarClient::AwaitHeard(std::chrono::steady_clock::time_point deadline) {
  sync::MutexLock lock(&mu_);
  waiting_ = true;
  awaited_ping_ = 0;
  eventfd_write(wake_, 1);
  while (waiting_) {
    if (!heard_.WaitUntil(&mu_, deadline) && waiting_) {
      waiting_ = false;
      return false;
    }
  }
  return true;
}

std::string SidecarClient::trouble() const {
  sync::MutexLock lock(&mu_);
  return trouble_;
}

void SidecarClient::Loop() {
  while (true) {
    const int64_t now = BootMs();
    CheckFence(now);
    if (socket_ < 0 && now >= connect_at_) Connect();
    const bool soon = ping_soon_.exchange(false);
    if (socket_ >= 0 && welcomed_ && (soon || now >= heartbeat_.ping_at())) Ping(now);
    const bool closing = TakeQueued();
    PingForWaiter(now);
    if (socket_ >= 0 && !out_.empty()) Write();
    if (closing) return;

    pollfd waits[2] = {{wake_, POLLIN, 0}, {socket_, POLLIN, 0}};
    if (!out_.empty()) waits[1].events |= POLLOUT;
    const int64_t timeout = std::clamp<int64_t>(NextTimer(now) - now, 0, 60000);
    poll(waits, socket_ >= 0 ? 2 : 1, static_cast<int>(timeout));
    if (waits[0].revents) {
      eventfd_t ignored;
      eventfd_read(wake_, &ignored);
    }
    if (socket_ >= 0 && (waits[1].revents & (POLLIN | POLLHUP | POLLERR))) ReadFrames();
  }
}

int64_t SidecarClient::NextTimer(int64_t now) const {
  int64_t next = now + 60000;
  if (socket_ < 0) next = std::min(next, connect_at_);
  if (socket_ >= 0 && welcomed_) next = std::min(next, heartbeat_.ping_at());
  return std::min(next, heartbeat_.fence_at());
}

void SidecarClient::CheckFence(int64_t now) {
  if (!heartbeat_.Fence(now)) return;
  handler_->OnFenced("the sidecar has not answered for " + std::to_string(heartbeat_.fence_ms()) +
                     " ms: this worker may have been replaced and stops");
}

void SidecarClient::Connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, options_.socket.data(),
              std::min(options_.socket.size(), sizeof(address.sun_path) - 1));
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return Disconnect("can't connect to " + options_.socket + ": " + why);
  }
  socket_ = fd;
  fork_guard::Own(fd);
  reader_ = {};
  out_ = EncodeFrame(handler_->Hello());
  sync::MutexLock lock(&mu_);
  trouble_.clear();
}

void SidecarClient::CloseSocket() {
  if (socket_ < 0) return;
  fork_guard::Disown(socket_);
  close(socket_);
  socket_ = -1;
}

void SidecarClient::Disconnect(const std::string& why) {
  CloseSocket();
  welcomed_ = false;
  out_.clear();
  connect_wait_ms_ =
      connect_wait_ms_ == 0 ? kFirstWaitMs : std::min(2 * connect_wait_ms_, kLastWaitMs);
  connect_at_ = BootMs() + connect_wait_ms_;
  sync::MutexLock lock(&mu_);
  awaited_ping_ = 0;
  trouble_ = why;
}

// What is queued goes out after the welcome: before it the sidecar doesn't know which worker
// speaks. True: closing.
bool SidecarClient::TakeQueued() {
  sync::MutexLock lock(&mu_);
  if (socket_ >= 0 && welcomed_) {
    for (const std::string& frame : queue_) out_ += frame;
    queue_.clear();
  }
  return closing_;
}

void SidecarClient::PingForWaiter(int64_t now) {
  if (socket_ < 0 || !welcomed_) return;
  {
    sync::MutexLock lock(&mu_);
    if (!waiting_ || awaited_ping_ != 0) return;
  }
  Ping(now);
  sync::MutexLock lock(&mu_);
  awaited_ping_ = heartbeat_.newest();
}

void SidecarClient::TellWaiter(uint64_t answered) {
  sync::MutexLock lock(&mu_);
  if (!waiting_ || awaited_ping_ == 0 || answered < awaited_ping_) return;
  waiting_ = false;
  heard_.NotifyAll();
}

void SidecarClient::Write() {
  while (!out_.empty()) {
    const ssize_t n = send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (n > 0) {
      out_.erase(0, n);
    } else if (errno != EINTR) {
      if (errno != EAGAIN) Disconnect(std::string("write to the sidecar: ") + std::strerror(errno));
      return;
    }
  }
}

void SidecarClient::ReadFrames() {
  char buffer[65536];
  while (socket_ >= 0) {
    const ssize_t n = recv(socket_, buffer, sizeof(buffer), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0)
      return Disconnect(n == 0 ? "the sidecar closed the connection" : std::strerror(errno));
    reader_.Feed({buffer, static_cast<size_t>(n)});
    nlohmann::json frame;
    FrameReader::Result result;
    while ((result = reader_.Next(&frame)) == FrameReader::Result::kFrame) HandleFrame(frame);
    if (result == FrameReader::Result::kError)
      return Disconnect("the sidecar sent no frame: " + reader_.error());
  }
}

void SidecarClient::HandleFrame(const nlohmann::json& frame) {
  try {
    HandleTyped(frame["t"], frame);
  } catch (const nlohmann::json::exception& error) {
    // Not what stands in it: that may be the ring's key.
    const std::string type = frame.value("t", "");
    std::fprintf(stderr, "ringmaster: frame '%s' ignored: %s\n", type.c_str(), error.what());
  }
}

void SidecarClient::HandleTyped(const std::string& type, const nlohmann::json& frame) {
  if (type == "pong") {
    const uint64_t number = frame.value("n", uint64_t{0});
    heartbeat_.Answered(number);
    return TellWaiter(number);
  }
  if (type == "welcome") {
    welcomed_ = true;
    connect_wait_ms_ = 0;
    heartbeat_.Restart(BootMs(), frame.value("pingMs", heartbeat_.ping_ms()),
                       frame.value("fenceMs", heartbeat_.fence_ms()));
  }
  handler_->OnFrame(frame);
}

void SidecarClient::Ping(int64_t now) {
  nlohmann::json ping = handler_->PingFields();
  ping["t"] = "ping";
  ping["n"] = heartbeat_.Ping(now);
  out_ += EncodeFrame(ping);
}

}  // namespace ringmaster::sidecar_client
