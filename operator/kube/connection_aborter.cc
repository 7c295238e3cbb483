#include "operator/kube/connection_aborter.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ringmaster::kube {

AbortableSocket::~AbortableSocket() {
  if (fd_ >= 0) close(fd_);
}

void AbortableSocket::Use(int fd) {
  const sync::MutexLock lock(&mu_);
  if (fd_ >= 0) close(fd_);
  fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (aborted_ && fd_ >= 0) shutdown(fd_, SHUT_RDWR);
}

void AbortableSocket::Abort() {
  const sync::MutexLock lock(&mu_);
  aborted_ = true;
  if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
}

void AbortableSocket::Reset() {
  const sync::MutexLock lock(&mu_);
  aborted_ = false;
}

bool AbortableSocket::aborted() const {
  const sync::MutexLock lock(&mu_);
  return aborted_;
}

bool AbortableSocket::ClosedByPeer() const {
  const sync::MutexLock lock(&mu_);
  if (fd_ < 0) return true;
  // Unread data may be a session ticket or TLS's close_notify; only the end of the stream tells
  // which.
  pollfd p{fd_, POLLRDHUP, 0};
  return poll(&p, 1, 0) != 0;
}

ConnectionAborter::ConnectionAborter() : thread_([this](std::stop_token stop) { Run(stop); }) {}

ConnectionAborter::Timer::Timer(ConnectionAborter& aborter, Clock::time_point deadline,
                                AbortableSocket& socket)
    : aborter_(aborter) {
  const sync::MutexLock lock(&aborter_.mu_);
  key_ = {deadline, ++aborter_.last_id_};
  aborter_.waiting_[key_] = &socket;
  if (aborter_.waiting_.begin()->first == key_) aborter_.changed_.NotifyAll();
}

ConnectionAborter::Timer::~Timer() {
  const sync::MutexLock lock(&aborter_.mu_);
  aborter_.waiting_.erase(key_);
}

void ConnectionAborter::Run(std::stop_token stop) {
  const sync::MutexLock lock(&mu_);
  while (!stop.stop_requested()) {
    while (!waiting_.empty() && waiting_.begin()->first.first <= Clock::now()) {
      waiting_.begin()->second->Abort();
      waiting_.erase(waiting_.begin());
    }
    const auto wake =
        waiting_.empty() ? Clock::now() + std::chrono::hours(24) : waiting_.begin()->first.first;
    // The wait ends for an earlier deadline, for the end of this one, or for a stop request; the
    // loop checks which.
    (void)changed_.WaitUntil(&mu_, stop, wake);
  }
}

}  // namespace ringmaster::kube
