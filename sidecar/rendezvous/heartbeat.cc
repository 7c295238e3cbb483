#include "sidecar/rendezvous/heartbeat.h"

#include <algorithm>
#include <array>
#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <istream>
#include <map>
#include <set>

#include "sidecar/net/address.h"
#include "sidecar/rendezvous/watch_choice.h"

namespace ringmaster::rendezvous {
namespace {

using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMaxLine = 512;
constexpr std::chrono::seconds kEchoIdle{10};
// Many more than watch one pod; strangers that come after are hung up on.
constexpr size_t kMaxEchoes = 256;
// Long enough for a suspicion, the view that follows from it, and another suspicion in that.
constexpr std::chrono::seconds kProbeFor{10};

// Two little-endian integers: epoch and step.
constexpr size_t kWord = 8;
using BeatBytes = std::array<unsigned char, 2 * kWord>;

BeatBytes Encode(const HeartbeatNews& news) {
  BeatBytes bytes;
  for (size_t i = 0; i < kWord; ++i) {
    bytes[i] = static_cast<unsigned char>(news.epoch >> (8 * i));
    bytes[kWord + i] = static_cast<unsigned char>(news.step >> (8 * i));
  }
  return bytes;
}

HeartbeatNews Decode(const BeatBytes& bytes) {
  HeartbeatNews news;
  for (size_t i = kWord; i-- > 0;) {
    news.epoch = news.epoch << 8 | bytes[i];
    news.step = news.step << 8 | bytes[kWord + i];
  }
  return news;
}

// The watched end: answers a greeting line with its own, then every beat with its news.
class Echo : public std::enable_shared_from_this<Echo> {
 public:
  Echo(tcp::socket socket, std::string greeting, std::string expected_job,
       std::shared_ptr<const HeartbeatNews> news)
      : socket_(std::move(socket)),
        silence_(socket_.get_executor()),
        greeting_(std::move(greeting)),
        expected_(std::move(expected_job)),
        news_(std::move(news)),
        line_(kMaxLine) {}

  void Start() {
    ExpectBytes();
    asio::async_read_until(socket_, line_, '\n',
                           [self = shared_from_this()](std::error_code error, size_t) {
                             if (error) return self->Close();
                             std::istream in(&self->line_);
                             std::string magic, job;
                             in >> magic >> job;
                             if (magic != "RMHB2" || job != self->expected_)
                               return self->Close();  // a stranger
                             self->line_.consume(self->line_.size());
                             self->Write(self->greeting_.size(), self->greeting_.data());
                           });
  }
  void Close() {
    std::error_code ignored;
    silence_.cancel();
    socket_.close(ignored);
  }

 private:
  // A sidecar that watches beats several times a second; other peers hold a descriptor that is
  // needed elsewhere.
  void ExpectBytes() {
    silence_.expires_after(kEchoIdle);
    silence_.async_wait([self = shared_from_this()](std::error_code cancelled) {
      if (!cancelled) self->Close();
    });
  }
  void Write(size_t bytes, const char* data) {
    asio::async_write(socket_, asio::buffer(data, bytes),
                      [self = shared_from_this()](std::error_code error, size_t) {
                        if (error) return self->Close();
                        self->Read();
                      });
  }
  void Read() {
    ExpectBytes();
    asio::async_read(
        socket_, asio::buffer(beat_), [self = shared_from_this()](std::error_code error, size_t) {
          if (error) return self->Close();
          self->beat_ = Encode(*self->news_);
          self->Write(self->beat_.size(), reinterpret_cast<const char*>(self->beat_.data()));
        });
  }

  tcp::socket socket_;
  asio::steady_timer silence_;
  const std::string greeting_, expected_;
  const std::shared_ptr<const HeartbeatNews> news_;
  asio::streambuf line_;
  BeatBytes beat_;
};

// The watching end.
class Watched : public std::enable_shared_from_this<Watched> {
 public:
  Watched(asio::io_context* loop, HeartbeatPeer peer, const HeartbeatOptions* options,
          const HeartbeatCallbacks* callbacks)
      : socket_(*loop),
        retry_(*loop),
        peer_(std::move(peer)),
        options_(options),
        callbacks_(callbacks),
        line_(kMaxLine) {}

  const HeartbeatPeer& peer() const { return peer_; }
  bool suspected() const { return suspected_; }
  bool unreachable() const { return unreachable_; }
  bool late() const { return silence_ > 2 * options_->interval; }

  // `elapsed`: since the last tick, as far as this process was awake. Returns whether a beat is
  // missing.
  bool Tick(milliseconds elapsed) {
    if (closed_) return false;
    silence_ += elapsed;
    if (silence_ > options_->suspect_after)
      Suspect("silent for " + std::to_string(silence_.count()) + " ms");
    // Whatever TCP has in flight on a link that is cut it sends again later and later, after
    // minutes in the end. A new connection is heard as soon as the link is back.
    attempt_age_ += elapsed;
    if (attempt_age_ > options_->suspect_after) Disconnect();
    if (!connecting_ && !connected_) Connect();
    if (connected_) Beat();
    return late();
  }

  void Close() {
    closed_ = true;
    retry_.cancel();
    std::error_code ignored;
    socket_.close(ignored);
  }

 private:
  // Keeps this object for a handler of the connection that is open, or being opened, now.
  class Attempt {
   public:
    explicit Attempt(std::shared_ptr<Watched> watched)
        : watched_(std::move(watched)), number_(watched_->attempt_) {}
    // Another connection has taken its place, or nobody is watched any more.
    bool over() const { return watched_->closed_ || watched_->attempt_ != number_; }
    Watched* operator->() const { return watched_.get(); }

   private:
    std::shared_ptr<Watched> watched_;
    uint64_t number_;
  };
  Attempt Current() { return Attempt(shared_from_this()); }

  void Connect() {
    tcp::endpoint endpoint;
    if (!net::ParseEndpoint(peer_.address, &endpoint)) return;  // silence will tell
    connecting_ = true;
    ++attempt_;
    attempt_age_ = milliseconds(0);
    line_.consume(line_.size());
    socket_ = tcp::socket(socket_.get_executor());
    socket_.async_connect(endpoint, [self = Current()](std::error_code error) {
      if (self.over()) return;
      if (error) return self->Broken("connect: " + error.message());
      std::error_code ignored;
      // A free port may be given to the very socket that dials it, which then talks to itself.
      if (self->socket_.local_endpoint(ignored) == self->socket_.remote_endpoint(ignored))
        return self->Broken("connect: nobody listens");
      self->socket_.set_option(tcp::no_delay(true), ignored);
      self->Greet();
    });
  }

  void Greet() {
    greeting_ = "RMHB2 " + options_->job + " " + options_->self + "\n";
    asio::async_write(socket_, asio::buffer(greeting_),
                      [self = Current()](std::error_code error, size_t) {
                        if (self.over()) return;
                        if (error) return self->Broken("write: " + error.message());
                        self->ReadGreeting();
                      });
  }

  void ReadGreeting() {
    asio::async_read_until(socket_, line_, '\n', [self = Current()](std::error_code error, size_t) {
      if (self.over()) return;
      if (error) return self->Broken("read: " + error.message());
      std::istream in(&self->line_);
      std::string magic, uid;
      in >> magic >> uid;
      self->line_.consume(self->line_.size());
      // Addresses are used again: another pod listens where this one was.
      if (uid != self->peer_.uid) {
        self->Disconnect();
        return self->Suspect("another pod listens at its address");
      }
      self->connecting_ = false;
      self->connected_ = true;
      self->Beat();
      self->Read();
    });
  }

  void Beat() {
    if (writing_) return;
    writing_ = true;
    asio::async_write(socket_, asio::buffer(beat_), [self = Current()](std::error_code, size_t) {
      if (!self.over()) self->writing_ = false;  // an error shows in Read
    });
  }

  void Read() {
    asio::async_read(socket_, asio::buffer(echo_),
                     [self = Current()](std::error_code error, size_t) {
                       if (self.over()) return;
                       if (error) return self->Broken("read: " + error.message());
                       self->silence_ = self->attempt_age_ = milliseconds(0);
                       self->suspected_ = self->unreachable_ = false;
                       self->callbacks_->on_heard(self->peer_.uid, Decode(self->echo_));
                       if (!self->closed_) self->Read();
                     });
  }

  void Broken(const std::string& why) {
    Disconnect();
    if (!suspected_) RetrySoon();
    if (std::exchange(unreachable_, true)) return;
    callbacks_->on_unreachable(peer_.uid, why);
  }

  // A sidecar that is started again listens within a few of these.
  void RetrySoon() {
    retry_.expires_after(options_->interval / 5);
    retry_.async_wait([self = shared_from_this()](std::error_code cancelled) {
      if (!cancelled && !self->closed_ && !self->connecting_ && !self->connected_) self->Connect();
    });
  }

  void Disconnect() {
    ++attempt_;
    connecting_ = connected_ = writing_ = false;
    std::error_code ignored;
    socket_.close(ignored);
  }

  void Suspect(const std::string& why) {
    if (suspected_) return;
    suspected_ = true;
    callbacks_->on_suspect(peer_.uid, why);
  }

  tcp::socket socket_;
  asio::steady_timer retry_;
  const HeartbeatPeer peer_;
  const HeartbeatOptions* const options_;
  const HeartbeatCallbacks* const callbacks_;
  std::string greeting_;
  asio::streambuf line_;
  const BeatBytes beat_ = Encode({});
  BeatBytes echo_;
  milliseconds silence_{0};
  uint64_t attempt_ = 0;         // counts connections that were begun or given up
  milliseconds attempt_age_{0};  // since the newest one was begun, or an echo came on it
  bool connecting_ = false, connected_ = false, writing_ = false, suspected_ = false,
       unreachable_ = false, closed_ = false;
};

class HeartbeatsImpl final : public Heartbeats {
 public:
  HeartbeatsImpl(asio::io_context* loop, HeartbeatOptions options, HeartbeatCallbacks callbacks)
      : loop_(loop),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        acceptor_(*loop),
        timer_(*loop) {}
  ~HeartbeatsImpl() override { Stop(); }

  bool Open(std::string* error) {
    if (!net::ListenOn(&acceptor_, options_.bind, options_.port, "RINGMASTER_HEARTBEAT_PORT",
                       error))
      return false;
    Accept();
    last_tick_ = Clock::now();
    Tick();
    return true;
  }

  int port() const override {
    std::error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

  void Watch(const std::vector<HeartbeatPeer>& pods) override {
    pods_ = pods;
    WatchChosen();
  }

  void SetNews(const HeartbeatNews& news) override { *news_ = news; }
  bool Suspects(const std::string& uid) const override {
    auto it = watched_.find(uid);
    return it != watched_.end() && it->second->suspected();
  }
  bool Unreachable(const std::string& uid) const override {
    auto it = watched_.find(uid);
    return it != watched_.end() && it->second->unreachable();
  }
  uint64_t missed() const override { return missed_; }

  void Stop() override {
    std::error_code ignored;
    acceptor_.close(ignored);
    timer_.cancel();
    for (auto& [uid, peer] : watched_) peer->Close();
    for (auto& weak : echoes_) {
      if (auto echo = weak.lock()) echo->Close();
    }
    watched_.clear();
  }

 private:
  void WatchChosen() {
    std::map<std::string, std::shared_ptr<Watched>> next;
    for (const HeartbeatPeer& peer : PeersToWatch(pods_, options_.self, probed_.uids())) {
      auto it = watched_.find(peer.uid);
      if (it != watched_.end() && it->second->peer().address == peer.address) {
        next[peer.uid] = it->second;
      } else {
        next[peer.uid] = std::make_shared<Watched>(loop_, peer, &options_, &callbacks_);
      }
    }
    watched_.swap(next);
    for (auto& [uid, old] : next) {
      if (watched_[uid] == nullptr) watched_.erase(uid);
      auto it = watched_.find(uid);
      if (it == watched_.end() || it->second != old) old->Close();
    }
  }

  // A late pod is seldom alone: its node or its switch is late with others. These are looked at
  // now, not when the views that follow make neighbours of them, one layer after the other.
  void ProbeAround(const std::vector<std::shared_ptr<Watched>>& peers, milliseconds elapsed) {
    bool news = probed_.Age(elapsed);
    for (const auto& peer : peers) {
      if (!peer->late() || probed_.Around(peer->peer().uid)) continue;
      probed_.Add(peer->peer().uid, PodsAround(pods_, peer->peer().uid), kProbeFor);
      news = true;
    }
    if (news) WatchChosen();
  }

  void Accept() {
    acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        std::error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        auto echo = std::make_shared<Echo>(std::move(socket), "RMHB2 " + options_.self + "\n",
                                           options_.job, news_);
        std::erase_if(echoes_, [](const auto& weak) { return weak.expired(); });
        if (echoes_.size() < kMaxEchoes) {
          echoes_.push_back(echo);
          echo->Start();
        }
        return Accept();
      }
      accept_again_ = true;  // out of descriptors: at the next tick
    });
  }

  void Tick() {
    Clock::time_point now = Clock::now();
    auto elapsed = std::chrono::duration_cast<milliseconds>(now - last_tick_);
    last_tick_ = now;
    // If this process was paused or starved, the peers' answers wait unread: that is no silence of
    // theirs.
    elapsed = std::min(elapsed, options_.interval + options_.interval / 4);
    const std::vector<std::shared_ptr<Watched>> peers = Snapshot();
    for (auto& peer : peers) missed_ += peer->Tick(elapsed) ? 1 : 0;
    if (pods_.size() > kAllPairsLimit) ProbeAround(peers, elapsed);
    if (std::exchange(accept_again_, false)) Accept();
    timer_.expires_after(options_.interval);
    timer_.async_wait([this](std::error_code error) {
      if (!error) Tick();
    });
  }

  // A callback may call Watch.
  std::vector<std::shared_ptr<Watched>> Snapshot() const {
    std::vector<std::shared_ptr<Watched>> all;
    for (const auto& [uid, peer] : watched_) all.push_back(peer);
    return all;
  }

  asio::io_context* const loop_;
  const HeartbeatOptions options_;
  const HeartbeatCallbacks callbacks_;
  tcp::acceptor acceptor_;
  asio::steady_timer timer_;
  Clock::time_point last_tick_;
  std::vector<HeartbeatPeer> pods_;  // of the view
  ProbedPods probed_;
  std::map<std::string, std::shared_ptr<Watched>> watched_;
  std::vector<std::weak_ptr<Echo>> echoes_;
  const std::shared_ptr<HeartbeatNews> news_ = std::make_shared<HeartbeatNews>();
  uint64_t missed_ = 0;
  bool accept_again_ = false;
};

}  // namespace

std::unique_ptr<Heartbeats> Heartbeats::Listen(asio::io_context* loop,
                                               const HeartbeatOptions& options,
                                               HeartbeatCallbacks callbacks, std::string* error) {
  auto heartbeats = std::make_unique<HeartbeatsImpl>(loop, options, std::move(callbacks));
  if (!heartbeats->Open(error)) return nullptr;
  return heartbeats;
}

}  // namespace ringmaster::rendezvous
