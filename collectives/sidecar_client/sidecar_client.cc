#include "collectives/sidecar_client/sidecar_client.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "collectives/fork_guard/fork_guard.h"
#include "collectives/sidecar_client/link_frames.h"
#include "common/fields/fields.h"
#include "common/worker_link/frame.h"
#include "common/worker_link/worker_frames.h"

namespace ringmaster::sidecar_client {
namespace {

using worker_link::EncodeFrame;

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
  HangUp();
  if (thread_.joinable()) thread_.join();
  fork_guard::Disown(wake_);
  close(wake_);
}

void SidecarClient::PingNow() {
  PingSoon();
  eventfd_write(wake_, 1);
}

void SidecarClient::Send(const nlohmann::json& frame) {
  queue_.Put(EncodeFrame(frame));
  eventfd_write(wake_, 1);
}

void SidecarClient::HangUp() {
  queue_.Close();
  eventfd_write(wake_, 1);
}

bool SidecarClient::AwaitHeard(std::chrono::steady_clock::time_point deadline) {
  queue_.AskForAnswer();
  eventfd_write(wake_, 1);
  return queue_.AwaitAnswer(deadline);
}

std::string SidecarClient::trouble() const { return queue_.trouble(); }

void SidecarClient::Loop() {
  while (true) {
    const int64_t now = BootMs();
    // Read before Act() takes the queued frames, so that none is left behind.
    const bool closing = queue_.closing();
    Act(now);
    if (closing) return connection_.Close();
    AwaitEvents(now);
  }
}

// What is queued goes out after the welcome: before it the sidecar doesn't know which worker
// speaks.
void SidecarClient::Act(int64_t now) {
  CheckFence(now);
  if (!connection_.is_open() && now >= connect_at_) Connect();
  const bool soon = ping_soon_.exchange(false);
  if (welcomed()) {
    if (soon || now >= heartbeat_.ping_at()) Ping(now);
    // Whoever asks has queued its frames before. They are taken after this line, so the ping
    // follows them.
    const bool asked = queue_.NeedsPing();
    connection_.Put(queue_.Take());
    if (asked) {
      Ping(now);
      queue_.Pinged(heartbeat_.newest());
    }
  }
  if (!connection_.is_open()) return;
  if (const Status s = connection_.Write(); !s.ok()) Disconnect(s.message());
}

void SidecarClient::AwaitEvents(int64_t now) {
  pollfd waits[2] = {{wake_, POLLIN, 0}, {connection_.fd(), POLLIN, 0}};
  if (connection_.wants_to_write()) waits[1].events |= POLLOUT;
  const int64_t timeout = std::clamp<int64_t>(NextTimer(now) - now, 0, 60000);
  poll(waits, connection_.is_open() ? 2 : 1, static_cast<int>(timeout));
  if (waits[0].revents) {
    eventfd_t ignored;
    eventfd_read(wake_, &ignored);
  }
  if (!connection_.is_open() || !(waits[1].revents & (POLLIN | POLLHUP | POLLERR))) return;
  const Status status =
      connection_.Read([this](const nlohmann::json& frame) { HandleFrame(frame); });
  if (!status.ok()) Disconnect(status.message());
}

int64_t SidecarClient::NextTimer(int64_t now) const {
  int64_t next = now + 60000;
  if (!connection_.is_open()) next = std::min(next, connect_at_);
  if (welcomed()) next = std::min(next, heartbeat_.ping_at());
  return std::min(next, heartbeat_.fence_at());
}

void SidecarClient::CheckFence(int64_t now) {
  if (heartbeat_.HeardAgain(now)) handler_->OnHeardAgain();
  if (!heartbeat_.Fence(now)) return;
  handler_->OnFenced("the sidecar has not answered for " + std::to_string(heartbeat_.fence_ms()) +
                     " ms: this worker may have been replaced and stops");
}

void SidecarClient::Connect() {
  if (const Status s = connection_.Open(options_.socket); !s.ok()) return Disconnect(s.message());
  connection_.Put(EncodeFrame(handler_->Hello()));
  queue_.SetTrouble("");
}

void SidecarClient::Disconnect(const std::string& why) {
  connection_.Close();
  welcomed_ = false;
  connect_wait_ms_ =
      connect_wait_ms_ == 0 ? kFirstWaitMs : std::min(2 * connect_wait_ms_, kLastWaitMs);
  connect_at_ = BootMs() + connect_wait_ms_;
  queue_.Disconnected(why);
}

void SidecarClient::HandleFrame(const nlohmann::json& frame) {
  const std::string type = fields::Text(frame, "t");
  Status status;
  try {
    status = HandleTyped(type, frame);
  } catch (const nlohmann::json::exception& error) {  // thrown by the handler
    status = {RM_ERR_INVALID, error.what()};
  }
  // The message names a field and doesn't show the whole frame, which may have the ring key in it.
  if (status.ok()) return;
  std::fprintf(stderr, "ringmaster: frame '%s' ignored: %s\n", type.c_str(),
               status.message().c_str());
}

Status SidecarClient::HandleTyped(const std::string& type, const nlohmann::json& frame) {
  if (type == "pong") {
    uint64_t number = 0;
    if (Status s = ReadPong(frame, &number); !s.ok()) return s;
    heartbeat_.Answered(number);
    queue_.Answered(number);
    return {};
  }
  if (type == "welcome") {
    LinkTimes times{heartbeat_.ping_ms(), heartbeat_.fence_ms()};
    if (Status s = ReadTimes(frame, &times); !s.ok()) return s;
    welcomed_ = true;
    connect_wait_ms_ = 0;
    heartbeat_.Restart(BootMs(), times.ping_ms, times.fence_ms);
  }
  handler_->OnFrame(frame);
  return {};
}

void SidecarClient::Ping(int64_t now) {
  nlohmann::json fields = handler_->PingFields();
  connection_.Put(EncodeFrame(worker_link::PingFrame(heartbeat_.Ping(now), std::move(fields))));
}

}  // namespace ringmaster::sidecar_client
