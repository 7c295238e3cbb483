#include "collectives/transport/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ringmaster::transport {
namespace {

constexpr auto kHandshakeLimit = std::chrono::seconds(5);
constexpr size_t kMaxPending = 1024;
constexpr int kHandshakeTick = 100, kParkedTick = 5000;  // milliseconds

void Signal(const UniqueFd& event) {
  uint64_t one = 1;
  (void)!write(event.get(), &one, sizeof(one));
}

void Drain(int event) {
  uint64_t count;
  (void)!read(event, &count, sizeof(count));
}

}  // namespace

Listener::Listener(Socket tcp_socket, Socket unix_socket, RingCredentials credentials)
    : tcp_(std::move(tcp_socket)),
      unix_(std::move(unix_socket)),
      credentials_(std::move(credentials)) {}

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

void Listener::SetKey(const RingKey& key) {
  sync::MutexLock lock(&mu_);
  if (key == credentials_.key) return;
  credentials_.key = key;
  ++key_number_;
  parked_.Clear();
}

RingCredentials Listener::credentials() const {
  sync::MutexLock lock(&mu_);
  return credentials_;
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
  given_up_ = std::max(given_up_, epoch - 1);
  for (const Arrival& overtaken : parked_.TakeBefore(epoch)) {
    HelloReply reply;
    reply.kind = ReplyKind::kMovedOn;
    reply.epoch = epoch;
    (void)SendSmall(overtaken.fd.get(), &reply, sizeof(reply));
  }
  return Status();
}

void Listener::GiveUp(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  given_up_ = std::max(given_up_, epoch);
}

std::vector<Arrival> Listener::Take(uint64_t epoch) {
  Drain(arrived_.get());
  sync::MutexLock lock(&mu_);
  return parked_.Take(epoch);
}

uint64_t Listener::Newest() const {
  sync::MutexLock lock(&mu_);
  return std::max(epoch_, parked_.newest());
}

void Listener::Loop() {
  std::vector<pollfd> polls;
  while (true) {
    polls = {{stop_.get(), POLLIN, 0}, {tcp_.fd.get(), POLLIN, 0}, {unix_.fd.get(), POLLIN, 0}};
    for (const Pending& p : pending_) polls.push_back({p.fd.get(), POLLIN, 0});
    if (poll(polls.data(), polls.size(), Patience()) < 0 && errno != EINTR) return;
    if (polls[0].revents != 0) return;
    auto now = Clock::now();
    std::erase_if(pending_, [&](Pending& p) { return Read(&p) || now > p.deadline; });
    if (polls[1].revents != 0) Accept(tcp_, false);
    if (polls[2].revents != 0) Accept(unix_, true);
    sync::MutexLock lock(&mu_);
    parked_.Expire(now);
  }
}

// The timeout of poll(). Without unfinished handshakes and parked connections only a new connection
// or the end can happen, and poll() reports both.
int Listener::Patience() const {
  if (!pending_.empty()) return kHandshakeTick;
  sync::MutexLock lock(&mu_);
  return parked_.size() == 0 ? -1 : kParkedTick;
}

void Listener::Accept(const Socket& socket, bool is_unix) {
  while (true) {
    UniqueFd fd(accept4(socket.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      const bool none_left = errno == EMFILE || errno == ENFILE;
      if (none_left && GiveUpOldest()) continue;
      // No descriptor is left and none can be freed. poll() would report the socket again at once,
      // so this waits a moment.
      if (none_left) poll(nullptr, 0, 10);
      return;
    }
    if (is_unix && !SameUser(fd.get())) continue;
    if (!is_unix) SetUpTcp(fd.get());
    Pending pending = Begun(std::move(fd), socket, is_unix);
    if (Read(&pending)) continue;
    // A member completes its handshake within a moment, so the connection that has been pending for
    // longest is the least likely to be a member's.
    if (pending_.size() >= kMaxPending) (void)GiveUpOldest();
    pending_.push_back(std::move(pending));
  }
}

bool Listener::GiveUpOldest() {
  if (pending_.empty()) return false;
  pending_.erase(pending_.begin());
  return true;
}

Listener::Pending Listener::Begun(UniqueFd fd, const Socket& socket, bool is_unix) const {
  sync::MutexLock lock(&mu_);
  return {std::move(fd),
          UniqueFd(),
          is_unix,
          key_number_,
          Clock::now() + kHandshakeLimit,
          ListenerHandshake(credentials_, socket.address, !is_unix)};
}

bool Listener::Read(Pending* pending) {
  if (!pending->fd.valid()) return true;
  const auto answerer = [this](const Hello& hello) { return AnswerTo(hello); };
  const auto result = pending->handshake.Read(pending->fd.get(), answerer, &pending->arena);
  if (result == ListenerHandshake::Result::kAgain) return false;
  if (result == ListenerHandshake::Result::kDone) Park(pending);
  return true;
}

ListenerHandshake::Answer Listener::AnswerTo(const Hello& hello) const {
  sync::MutexLock lock(&mu_);
  if (hello.kind == HelloKind::kProbe) return {ReplyKind::kAlive, given_up_};
  if (hello.epoch < epoch_) return {ReplyKind::kMovedOn, epoch_};
  return {ReplyKind::kChallenge, epoch_};
}

void Listener::Park(Pending* pending) {
  sync::MutexLock lock(&mu_);
  const Hello& hello = pending->handshake.hello();
  // The connection is closed without an answer. The dialer tries again, and the answer then says
  // what has changed meanwhile.
  if (pending->key_number != key_number_ || hello.epoch < epoch_) return;
  if (!MayFollow(hello.epoch, epoch_)) return;
  parked_.Add({std::move(pending->fd), std::move(pending->arena), hello, pending->is_unix,
               pending->handshake.wanted_rank(), pending->handshake.keys()},
              Clock::now());
  Signal(arrived_);
}

}  // namespace ringmaster::transport
