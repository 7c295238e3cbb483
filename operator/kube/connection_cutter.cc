#include "operator/kube/connection_cutter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ringmaster::kube {

CuttableSocket::~CuttableSocket() {
  if (fd_ >= 0) close(fd_);
}

void CuttableSocket::Use(int fd) {
  std::lock_guard lock(mu_);
  if (fd_ >= 0) close(fd_);
  fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (cut_ && fd_ >= 0) shutdown(fd_, SHUT_RDWR);
}

void CuttableSocket::Cut() {
  std::lock_guard lock(mu_);
  cut_ = true;
  if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
}

void CuttableSocket::Reset() {
  std::lock_guard lock(mu_);
  cut_ = false;
}

bool CuttableSocket::was_cut() const {
  std::lock_guard lock(mu_);
  return cut_;
}

bool CuttableSocket::ClosedByPeer() const {
  std::lock_guard lock(mu_);
  if (fd_ < 0) return true;
  // Unread data may be a session ticket or TLS's goodbye; only the end of the stream says which.
  pollfd p{fd_, POLLRDHUP, 0};
  return poll(&p, 1, 0) != 0;
}

ConnectionCutter::ConnectionCutter() : thread_([this](std::stop_token stop) { Run(stop); }) {}

ConnectionCutter::Timer::Timer(ConnectionCutter& cutter, Clock::time_point deadline,
                               CuttableSocket& socket)
    : cutter_(cutter) {
  std::lock_guard lock(cutter_.mu_);
  key_ = {deadline, ++cutter_.last_id_};
  cutter_.waiting_[key_] = &socket;
  if (cutter_.waiting_.begin()->first == key_) cutter_.changed_.notify_all();
}

ConnectionCutter::Timer::~Timer() {
  std::lock_guard lock(cutter_.mu_);
  cutter_.waiting_.erase(key_);
}

void ConnectionCutter::Run(std::stop_token stop) {
  std::unique_lock lock(mu_);
  while (!stop.stop_requested()) {
    while (!waiting_.empty() && waiting_.begin()->first.first <= Clock::now()) {
      waiting_.begin()->second->Cut();
      waiting_.erase(waiting_.begin());
    }
    auto wake =
        waiting_.empty() ? Clock::now() + std::chrono::hours(24) : waiting_.begin()->first.first;
    changed_.wait_until(lock, stop, wake,
                        [&] { return !waiting_.empty() && waiting_.begin()->first.first < wake; });
  }
}

}  // namespace ringmaster::kube
