#include "collectives/transport/liveness_monitor.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

#include "collectives/transport/probe.h"

namespace ringmaster::transport {
namespace {

// A few microseconds: the peer may need this very core.
constexpr int kSpins = 100;
constexpr int kYields = 200;
constexpr int kIoSpins = 10;
constexpr int kIoYields = 50;
// Bounds of a sleep: how late a lost wake-up or a death in shared memory is noticed at worst.
constexpr long kSleepNanos = 2'000'000;
constexpr int kPollMillis = 100;
constexpr auto kProbeLimit = std::chrono::milliseconds(500);

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

uint32_t* LowerHalf(Flag* flag) { return reinterpret_cast<uint32_t*>(&flag->word); }

}  // namespace

LivenessMonitor::LivenessMonitor(Options options)
    : options_(std::move(options)),
      connections_(options_.peers.size()),
      suspected_(options_.peers.size(), false),
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void LivenessMonitor::SetConnection(int peer, std::unique_ptr<Connection> connection) {
  sync::MutexLock lock(&mu_);  // Fail() walks over the links from any thread
  connections_[static_cast<size_t>(peer)] = std::move(connection);
  if (aborted() && connections_[static_cast<size_t>(peer)] != nullptr)
    connections_[static_cast<size_t>(peer)]->Shutdown();
}

Status LivenessMonitor::status() const {
  sync::MutexLock lock(&mu_);
  return status_;
}

void LivenessMonitor::Abort(const std::string& why) { (void)Fail(RM_ERR_EPOCH_MOVED, why); }

void LivenessMonitor::SayGivenUp() const {
  if (options_.on_given_up) options_.on_given_up();
}

Status LivenessMonitor::Fail(rm_status code, const std::string& why) {
  if (!aborted()) SayGivenUp();
  {
    sync::MutexLock lock(&mu_);
    if (!status_.ok()) return status_;
    status_ = Status(RM_ERR_EPOCH_MOVED, why);
    aborted_.store(true, std::memory_order_seq_cst);
    for (const auto& connection : connections_) {
      if (connection != nullptr) connection->Shutdown();
    }
  }
  uint64_t one = 1;
  (void)!write(event_.get(), &one, sizeof(one));
  if (Flag* flag = sleeping_on_.load(std::memory_order_seq_cst)) {
    syscall(SYS_futex, LowerHalf(flag), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  return Status(code, why);
}

Status LivenessMonitor::Explain(Progress progress, int peer) {
  std::string name = "rank " + std::to_string(peer);
  switch (progress) {
    case Progress::kNone:
    case Progress::kSome:
      return Status();
    case Progress::kClosed:
      return ExplainClosed({&peer, 1});
    case Progress::kNewerEpoch:
      return Fail(RM_ERR_EPOCH_MOVED, name + " is in a newer epoch");
    case Progress::kBye:
      return Fail(RM_ERR_EPOCH_MOVED, name + " has left the view");
    case Progress::kForged:
      // The peer knows nothing of it: without a suspicion nobody would bring another view.
      return Suspect(peer, "what came over its connection was changed on the way", true);
    case Progress::kMismatch:
      return Fail(RM_ERR_MISMATCH,
                  name + " is in another operation, or in this one with another size");
  }
  return Status();
}

Status LivenessMonitor::ExplainClosed(std::span<const int> peers) {
  if (aborted()) return status();
  int in_view = -1;
  for (const int peer : peers) {
    uint64_t given_up = 0;
    // The dead first: others may have closed only because they saw it before us.
    if (!ProbeAlive(options_.peers[static_cast<size_t>(peer)], options_.credentials, kProbeLimit,
                    &given_up)) {
      return Suspect(peer, "connection closed");
    }
    if (given_up < options_.epoch && in_view < 0) in_view = peer;
  }
  if (in_view < 0) {
    return Fail(RM_ERR_EPOCH_MOVED,
                "rank " + std::to_string(peers.front()) + " has given up the view");
  }
  ReportBrokenLink(in_view, "the connection to it broke");
  return Fail(RM_ERR_EPOCH_MOVED, "the connection to rank " + std::to_string(in_view) +
                                      " broke, and that rank lives and is in the view");
}

void LivenessMonitor::ReportBrokenLink(int peer, const std::string& why) {
  if (!aborted() && options_.on_broken_link) options_.on_broken_link(peer, why);
}

Status LivenessMonitor::Suspect(int peer, const std::string& why, bool forged) {
  bool first = false;
  if (!aborted() && !suspected_[static_cast<size_t>(peer)]) {
    first = true;
    suspected_[static_cast<size_t>(peer)] = true;
  }
  Status status =
      Fail(RM_ERR_EPOCH_MOVED, "rank " + std::to_string(peer) + (forged ? ": " : " died: ") + why);
  if (first && options_.on_suspect) options_.on_suspect(peer, why);
  return status;
}

LivenessMonitor::Ending LivenessMonitor::ReadEnding(Connection* connection, uint64_t op) const {
  FrameHeader header;
  const ssize_t rc = connection->Peek(&header, sizeof(header));
  if (rc <= 0) return Ending::kBroken;
  // Data before the end: the operation that waits for it decides.
  if (rc < static_cast<ssize_t>(sizeof(header)) || header.magic != kMagic ||
      header.kind != FrameKind::kBye) {
    return Ending::kUndecided;
  }
  return header.op >= op ? Ending::kLeft : Ending::kLeftEarly;
}

Status LivenessMonitor::CheckConnections(uint64_t op) {
  if (aborted()) return status();
  polls_.clear();
  for (const auto& connection : connections_) {
    if (connection != nullptr) polls_.push_back({connection->fd(), POLLRDHUP, 0});
  }
  if (poll(polls_.data(), polls_.size(), 0) <= 0) return Status();
  std::vector<int> broken;
  size_t at = 0;
  for (const auto& connection : connections_) {
    if (connection == nullptr) continue;
    if (polls_[at++].revents == 0) continue;
    Ending ending = ReadEnding(connection.get(), op);
    if (ending == Ending::kLeftEarly) return Explain(Progress::kBye, connection->peer());
    if (ending == Ending::kBroken) broken.push_back(connection->peer());
  }
  if (aborted()) return status();
  return broken.empty() ? Status() : ExplainClosed(broken);
}

Status LivenessMonitor::CheckLinks() {
  std::vector<int> dead;
  for (const auto& connection : connections_) {
    if (connection != nullptr && connection->LinkIsDead()) dead.push_back(connection->peer());
  }
  return dead.empty() ? Status() : ExplainClosed(dead);
}

Status LivenessMonitor::WaitFlag(Flag* flag, uint64_t tag, uint64_t count, uint64_t op) {
  if (Reached(*flag, tag, count)) return Status();
  if (spin_) {
    for (int i = 0; i < kSpins; ++i) {
      Pause();
      if (Reached(*flag, tag, count)) return Status();
    }
  }
  for (int i = 0; i < kYields; ++i) {
    sched_yield();
    if (Reached(*flag, tag, count)) return Status();
    if (aborted()) return status();
  }
  return SleepOn(flag, tag, count, op);
}

Status LivenessMonitor::SleepOn(Flag* flag, uint64_t tag, uint64_t count, uint64_t op) {
  timespec limit{0, kSleepNanos};
  Status status;
  // Fail() wakes the flag that is named here: it sets `aborted` first and reads this afterwards, we
  // name the flag first and look at `aborted` afterwards, so one of the two sees the other.
  sleeping_on_.store(flag, std::memory_order_seq_cst);
  while (true) {
    status = CheckConnections(op);
    if (!status.ok()) break;
    flag->waiting.store(1, std::memory_order_seq_cst);
    uint64_t word = flag->word.load(std::memory_order_seq_cst);
    if (Reached(*flag, tag, count)) break;
    if (aborted()) continue;
    syscall(SYS_futex, LowerHalf(flag), FUTEX_WAIT, static_cast<uint32_t>(word), &limit, nullptr,
            0);
    if (Reached(*flag, tag, count)) break;
  }
  sleeping_on_.store(nullptr, std::memory_order_seq_cst);
  return status;
}

Status LivenessMonitor::WaitIo(std::span<pollfd> wanted, int idle, uint64_t op) {
  if (aborted()) return status();
  if (spin_ && idle < kIoSpins) {
    Pause();
    return Status();
  }
  if (idle < kIoYields) {
    sched_yield();
    return Status();
  }
  polls_.assign(wanted.begin(), wanted.end());
  polls_.push_back({event_.get(), POLLIN, 0});
  int rc = poll(polls_.data(), polls_.size(), kPollMillis);
  if (aborted()) return status();
  // Nothing on the connections in use for that long: perhaps another rank has died.
  if (rc != 0) return Status();
  Status status = CheckConnections(op);
  return status.ok() ? CheckLinks() : status;
}

Status LivenessMonitor::Overdue(int peer) {
  return Fail(RM_ERR_TIMEOUT, "rank " + std::to_string(peer) + " did not answer in time");
}

Status LivenessMonitor::Finish(const Connection& connection, short events,
                               const std::function<bool()>& done,
                               const std::function<Progress()>& step, uint64_t op,
                               Clock::time_point deadline) {
  for (int idle = 0; !done();) {
    Progress progress = step();
    if (progress == Progress::kSome) {
      idle = 0;
      continue;
    }
    Status status = Explain(progress, connection.peer());
    pollfd wanted{connection.fd(), events, 0};
    if (status.ok()) status = WaitIo({&wanted, 1}, idle++, op);
    if (status.ok() && Clock::now() >= deadline) status = Overdue(connection.peer());
    if (!status.ok()) return status;
  }
  return Status();
}

Status LivenessMonitor::Send(FrameSender* frame, size_t bytes, uint64_t op,
                             Clock::time_point deadline) {
  return Finish(
      *frame->connection(), POLLOUT, [&] { return frame->done(); },
      [&] { return frame->Push(bytes); }, op, deadline);
}

Status LivenessMonitor::Receive(FrameReceiver* frame, void* into, size_t bytes, uint64_t op,
                                Clock::time_point deadline) {
  auto pull = [&] {
    size_t at = frame->received();
    size_t got = 0;
    return frame->Pull(static_cast<std::byte*>(into) + at, bytes - at, &got);
  };
  return Finish(
      *frame->connection(), POLLIN, [&] { return frame->done(); }, pull, op, deadline);
}

void LivenessMonitor::SendBye(uint64_t op) {
  if (aborted()) return;
  SayGivenUp();
  FrameHeader bye;
  bye.kind = FrameKind::kBye;
  bye.epoch = options_.epoch;
  bye.op = op;
  for (const auto& connection : connections_) {
    const iovec part{&bye, sizeof(bye)};
    if (connection != nullptr) (void)connection->Send({&part, 1});
  }
}

}  // namespace ringmaster::transport
