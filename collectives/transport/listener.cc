#include "collectives/transport/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ringmaster::transport {
namespace {

constexpr auto kHelloLimit = std::chrono::seconds(5);
constexpr size_t kMaxPending = 4096;
constexpr size_t kMaxParkedPerEpoch = 16384;

void Reply(const UniqueFd& fd, ReplyKind kind, uint64_t epoch) {
  HelloReply reply;
  reply.kind = kind;
  reply.epoch = epoch;
  (void)SendSmall(fd.get(), &reply, sizeof(reply));
}

void Signal(const UniqueFd& event) {
  uint64_t one = 1;
  (void)!write(event.get(), &one, sizeof(one));
}

void Drain(int event) {
  uint64_t count;
  (void)!read(event, &count, sizeof(count));
}

}  // namespace

Listener::Listener(UniqueFd tcp_fd, UniqueFd unix_fd, std::string job)
    : tcp_fd_(std::move(tcp_fd)), unix_fd_(std::move(unix_fd)), job_(std::move(job)) {}

Listener::~Listener() {
  if (thread_.joinable()) {
    Signal(stop_);
    thread_.join();
  }
}

Status Listener::Start() {
  stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  arrived_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_.valid() || !arrived_.valid()) return ErrnoStatus("eventfd");
  thread_ = std::thread([this] { Loop(); });
  return Status();
}

Status Listener::Begin(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  if (epoch == epoch_) {
    return Status(RM_ERR_INVALID,
                  "epoch " + std::to_string(epoch) + " was already built on this endpoint");
  }
  if (epoch < epoch_) {
    return Status(RM_ERR_EPOCH_MOVED, "epoch " + std::to_string(epoch) + " is older than " +
                                          std::to_string(epoch_) +
                                          ", which this endpoint has built");
  }
  epoch_ = epoch;
  while (!parked_.empty() && parked_.begin()->first < epoch) {
    for (Arrival& arrival : parked_.begin()->second) Reply(arrival.fd, ReplyKind::kMovedOn, epoch);
    parked_.erase(parked_.begin());
  }
  return Status();
}

std::vector<Listener::Arrival> Listener::Take(uint64_t epoch) {
  Drain(arrived_.get());
  sync::MutexLock lock(&mu_);
  auto found = parked_.find(epoch);
  if (found == parked_.end()) return {};
  std::vector<Arrival> taken = std::move(found->second);
  parked_.erase(found);
  return taken;
}

uint64_t Listener::Newest() const {
  sync::MutexLock lock(&mu_);
  return parked_.empty() ? epoch_ : std::max(epoch_, parked_.rbegin()->first);
}

void Listener::Loop() {
  std::vector<pollfd> polls;
  while (true) {
    polls = {{stop_.get(), POLLIN, 0}, {tcp_fd_.get(), POLLIN, 0}, {unix_fd_.get(), POLLIN, 0}};
    for (const Pending& p : pending_) polls.push_back({p.arrival.fd.get(), POLLIN, 0});
    // Without half-read Hellos nothing but a connection or the end can happen.
    if (poll(polls.data(), polls.size(), pending_.empty() ? -1 : 100) < 0 && errno != EINTR) return;
    if (polls[0].revents != 0) return;
    auto now = Clock::now();
    std::erase_if(pending_, [&](Pending& p) { return ReadHello(&p) || now > p.deadline; });
    if (polls[1].revents != 0) Accept(tcp_fd_.get(), false);
    if (polls[2].revents != 0) Accept(unix_fd_.get(), true);
  }
}

void Listener::Accept(int listening, bool is_unix) {
  while (pending_.size() < kMaxPending) {
    UniqueFd fd(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      // Out of descriptors: poll would report the listener again at once.
      if (errno == EMFILE || errno == ENFILE) poll(nullptr, 0, 10);
      return;
    }
    if (is_unix && !SameUser(fd.get())) continue;
    if (!is_unix) SetNoDelay(fd.get());
    Pending pending;
    pending.arrival.fd = std::move(fd);
    pending.arrival.is_unix = is_unix;
    pending.deadline = Clock::now() + kHelloLimit;
    if (!ReadHello(&pending)) pending_.push_back(std::move(pending));
  }
}

bool Listener::ReadHello(Pending* pending) {
  Arrival& arrival = pending->arrival;
  if (!arrival.fd.valid()) return true;
  IoResult io =
      RecvSmall(arrival.fd.get(), &arrival.hello, sizeof(Hello), &pending->got, &arrival.arena);
  // Strangers are cut off at their first bytes instead of being waited for.
  if (pending->got >= sizeof(uint32_t) && arrival.hello.magic != kMagic) return true;
  if (io == IoResult::kAgain) return false;
  if (io == IoResult::kDone) Settle(std::move(arrival));
  return true;
}

void Listener::Settle(Arrival arrival) {
  const Hello& hello = arrival.hello;
  if (hello.version != kWireVersion)
    return Reply(arrival.fd, ReplyKind::kWrongVersion, kWireVersion);
  char job[kJobBytes];
  CopyName(job_, job);
  if (std::memcmp(job, hello.job, kJobBytes) != 0)
    return Reply(arrival.fd, ReplyKind::kWrongJob, 0);
  sync::MutexLock lock(&mu_);
  if (hello.kind == HelloKind::kProbe) return Reply(arrival.fd, ReplyKind::kAlive, epoch_);
  if (hello.epoch < epoch_) return Reply(arrival.fd, ReplyKind::kMovedOn, epoch_);
  std::vector<Arrival>& parked = parked_[hello.epoch];
  if (parked.size() < kMaxParkedPerEpoch) parked.push_back(std::move(arrival));
  Signal(arrived_);
}

}  // namespace ringmaster::transport
