#include "collectives/transport/liveness_monitor.h"

#include <sched.h>

#include <chrono>
#include <utility>

#include "collectives/transport/probe.h"

namespace ringmaster::transport {
namespace {

// Spinning lasts a few microseconds only, because the peer may need this very core.
constexpr int kSpins = 100;
constexpr int kYields = 200;
constexpr int kIoSpins = 10;
constexpr int kIoYields = 50;
// How late a death is noticed at worst if it doesn't end the poll.
constexpr int kPollMillis = 100;
constexpr std::chrono::milliseconds kLinkInterval{kPollMillis};

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

LivenessMonitor::LivenessMonitor(Options options)
    : options_(std::move(options)),
      suspected_(options_.peers.size(), false),
      connections_(options_.peers.size()) {}

void LivenessMonitor::Abort(const std::string& why) { (void)Fail(RM_ERR_EPOCH_MOVED, why); }

void LivenessMonitor::SayGivenUp() const {
  if (options_.on_given_up) options_.on_given_up();
}

Status LivenessMonitor::Fail(rm_status code, const std::string& why) {
  if (!aborted()) SayGivenUp();
  if (!death_.Die(why)) return status();
  connections_.Shutdown();
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
      // The peer doesn't know of it. Without a suspicion nobody would propose another view.
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
    // A dead rank is reported before anything else: the others may have closed only because they
    // saw its death before us.
    if (!ProbeAlive(options_.peers[static_cast<size_t>(peer)], options_.credentials,
                    options_.probe_limit, &given_up)) {
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

Status LivenessMonitor::CheckConnections(uint64_t op) {
  if (aborted()) return status();
  const PeerConnections::Ended ended = connections_.FindEnded(op);
  if (ended.left_early) return Explain(Progress::kBye, *ended.left_early);
  return ended.broken.empty() ? Status() : ExplainClosed(ended.broken);
}

Status LivenessMonitor::CheckLinks() {
  const std::vector<int> dead = connections_.FindDeadLinks();
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
  // The peer of this flag may wait for one to which our link is dead, and that we alone can see.
  auto links_at = Clock::now() + kLinkInterval;
  return death_.SleepOn(flag, tag, count, [&] {
    if (Status s = CheckConnections(op); !s.ok()) return s;
    if (Clock::now() < links_at) return Status();
    links_at = Clock::now() + kLinkInterval;
    return CheckLinks();
  });
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
  polls_.push_back({abort_event(), POLLIN, 0});
  int rc = poll(polls_.data(), polls_.size(), kPollMillis);
  if (aborted()) return status();
  // Nothing has come on the connections in use for kPollMillis: perhaps another rank has died.
  if (rc != 0) return Status();
  Status status = CheckConnections(op);
  return status.ok() ? CheckLinks() : status;
}

void LivenessMonitor::SendBye(uint64_t op) {
  if (aborted()) return;
  SayGivenUp();
  connections_.SendBye(options_.epoch, op);
}

}  // namespace ringmaster::transport
