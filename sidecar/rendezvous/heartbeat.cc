#include "sidecar/rendezvous/heartbeat.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <set>

#include "sidecar/net/address.h"
#include "sidecar/rendezvous/heartbeat_connection.h"
#include "sidecar/rendezvous/heartbeat_echo.h"
#include "sidecar/rendezvous/peer_silence.h"
#include "sidecar/rendezvous/watch_choice.h"

namespace ringmaster::rendezvous {
namespace {

using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Many more than watch one pod.
constexpr size_t kMaxEchoes = 256;
// Long enough for a suspicion, the view that follows from it, and another suspicion in that.
constexpr std::chrono::seconds kProbeFor{10};

// An echo that is older than so many times the patience for silence is no sign of life. Links are
// slow; but somebody who holds back the echoes of a living pod must not be able to hand them out
// when it has died.
constexpr int kMaxLate = 4;

// A pod that is watched: how long it has been silent, over connections one after the other.
class Watched : public std::enable_shared_from_this<Watched> {
 public:
  // `proven`: uids of pods that have proven the job's key. All of them outlive this.
  Watched(asio::io_context* loop, HeartbeatPeer peer, const HeartbeatOptions* options,
          const HeartbeatCallbacks* callbacks, std::set<std::string>* proven)
      : loop_(loop),
        retry_(*loop),
        peer_(std::move(peer)),
        options_(options),
        callbacks_(callbacks),
        proven_(proven),
        silence_(options->interval, options->suspect_after) {}

  const HeartbeatPeer& peer() const { return peer_; }
  bool suspected() const { return suspected_; }
  bool unreachable() const { return unreachable_; }
  bool late() const { return silence_.Late(); }
  // Whether it lives is known.
  bool settled() const { return suspected_ || (heard_ && !late()); }

  // `elapsed`: since the last tick, as far as this process was awake. Returns whether a beat is
  // missing.
  bool Tick(milliseconds elapsed) {
    if (closed_) return false;
    silence_.Pass(elapsed);
    if (silence_.IsSuspicious())
      Suspect("silent for " + std::to_string(silence_.lasted().count()) + " ms");
    if (silence_.IsRedialDue()) Disconnect();
    if (connection_ == nullptr) {
      Connect();
    } else {
      connection_->Beat();
    }
    return late();
  }

  // A later view may say that the pod proves the job's key: a connection on which it has not done
  // so is not believed any longer.
  void Learn(const HeartbeatPeer& peer) {
    if (!peer.proves || std::exchange(peer_.proves, true)) return;
    if (proven_->count(peer_.uid) == 0) Disconnect();
  }

  void Close() {
    closed_ = true;
    retry_.cancel();
    Disconnect();
  }

 private:
  void Connect() {
    const auto endpoint = net::ParseEndpoint(peer_.address);
    if (!endpoint) return;  // the peer stays silent, and is suspected for that
    silence_.Dialled();
    const bool must_prove =
        !options_->key.empty() && (peer_.proves || proven_->count(peer_.uid) > 0);
    connection_ = std::make_shared<HeartbeatConnection>(
        loop_, HeartbeatTarget{options_->job, options_->self, options_->key, peer_.uid, must_prove},
        Events());
    connection_->Dial(*endpoint);
  }

  // Calls nothing once this is gone.
  template <typename Work>
  auto IfHere(Work work) {
    return [weak = weak_from_this(), work](const auto&... args) {
      if (const auto self = weak.lock()) work(self.get(), args...);
    };
  }

  HeartbeatEvents Events() {
    HeartbeatEvents events;
    events.on_open = IfHere([](Watched* self, bool proven) {
      if (proven) self->proven_->insert(self->peer_.uid);
    });
    events.on_echo = IfHere(
        [](Watched* self, const HeartbeatNews& news, uint64_t late) { self->Heard(news, late); });
    events.on_broken = IfHere([](Watched* self, const std::string& why) { self->Broken(why); });
    events.on_unable = IfHere([](Watched* self) {
      self->Disconnect();
      self->silence_.CouldNotAsk();
    });
    events.on_other_pod = IfHere([](Watched* self) {
      self->Disconnect();
      self->Suspect("another pod listens at its address");
    });
    // Dialled again at the next tick; silence will tell.
    events.on_refused = IfHere([](Watched* self, const std::string& why) {
      self->Disconnect();
      self->callbacks_->on_refused(self->peer_.address, why);
    });
    return events;
  }

  void Heard(const HeartbeatNews& news, uint64_t late) {
    const auto late_for = static_cast<int64_t>(late) * options_->interval;
    if (late_for > kMaxLate * options_->suspect_after) return;
    silence_.Heard();
    heard_ = true;
    suspected_ = unreachable_ = false;
    callbacks_->on_heard(peer_.uid, news);
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
      if (!cancelled && !self->closed_ && self->connection_ == nullptr) self->Connect();
    });
  }

  void Disconnect() {
    if (connection_ != nullptr) std::exchange(connection_, nullptr)->Close();
  }

  void Suspect(const std::string& why) {
    if (suspected_) return;
    suspected_ = true;
    callbacks_->on_suspect(peer_.uid, why);
  }

  asio::io_context* const loop_;
  asio::steady_timer retry_;
  HeartbeatPeer peer_;
  const HeartbeatOptions* const options_;
  const HeartbeatCallbacks* const callbacks_;
  std::set<std::string>* const proven_;
  std::shared_ptr<HeartbeatConnection> connection_;  // null: between two tries
  PeerSilence silence_;
  bool heard_ = false;  // ever
  bool suspected_ = false, unreachable_ = false, closed_ = false;
};

class HeartbeatsImpl final : public Heartbeats {
 public:
  HeartbeatsImpl(asio::io_context* loop, HeartbeatOptions options, HeartbeatCallbacks callbacks)
      : loop_(loop),
        options_(std::move(options)),
        callbacks_(Counted(std::move(callbacks))),
        acceptor_(*loop),
        timer_(*loop) {
    subject_->job = options_.job;
    subject_->self = options_.self;
    subject_->key = options_.key;
    subject_->on_refused = callbacks_.on_refused;
  }
  ~HeartbeatsImpl() override { Stop(); }

  tl::expected<void, std::string> Open() {
    auto listens =
        net::ListenOn(&acceptor_, options_.bind, options_.port, "RINGMASTER_HEARTBEAT_PORT");
    if (!listens) return listens;
    Accept();
    last_tick_ = Clock::now();
    Tick();
    return {};
  }

  int port() const override {
    std::error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

  void Watch(const std::vector<HeartbeatPeer>& pods) override {
    pods_ = pods;
    std::set<std::string> uids;
    for (const HeartbeatPeer& pod : pods) uids.insert(pod.uid);
    std::erase_if(proven_, [&](const std::string& uid) { return uids.count(uid) == 0; });
    WatchChosen();
  }

  void SetNews(const HeartbeatNews& news) override { subject_->news = news; }
  std::vector<std::string> LookAround(const std::string& uid) override {
    if (pods_.size() <= kAllPairsLimit) return {};
    if (Probe(uid)) WatchChosen();
    const std::set<std::string> around = PodsAround(pods_, uid);
    std::vector<std::string> unsettled;
    for (const auto& [other, peer] : watched_) {
      if (around.count(other) > 0 && !peer->settled()) unsettled.push_back(other);
    }
    return unsettled;
  }
  bool Suspects(const std::string& uid) const override {
    auto it = watched_.find(uid);
    return it != watched_.end() && it->second->suspected();
  }
  bool Unreachable(const std::string& uid) const override {
    auto it = watched_.find(uid);
    return it != watched_.end() && it->second->unreachable();
  }
  uint64_t missed() const override { return missed_; }
  uint64_t refused() const override { return refused_; }

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
  HeartbeatCallbacks Counted(HeartbeatCallbacks callbacks) {
    callbacks.on_refused = [this, tell = callbacks.on_refused](const std::string& from,
                                                               const std::string& why) {
      ++refused_;
      if (tell) tell(from, why);
    };
    return callbacks;
  }

  void WatchChosen() {
    std::map<std::string, std::shared_ptr<Watched>> next;
    for (const HeartbeatPeer& peer : PeersToWatch(pods_, options_.self, probed_.uids())) {
      auto it = watched_.find(peer.uid);
      if (it != watched_.end() && it->second->peer().address == peer.address) {
        next[peer.uid] = it->second;
        it->second->Learn(peer);
      } else {
        next[peer.uid] = std::make_shared<Watched>(loop_, peer, &options_, &callbacks_, &proven_);
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
      if (peer->late() && Probe(peer->peer().uid)) news = true;
    }
    if (news) WatchChosen();
  }

  // False: a probe around it is under way.
  bool Probe(const std::string& uid) {
    if (probed_.Around(uid)) return false;
    probed_.Add(uid, PodsAround(pods_, uid), kProbeFor);
    return true;
  }

  void Accept() {
    acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (!error) {
        std::error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        Answer(std::make_shared<HeartbeatEcho>(std::move(socket), subject_));
        return Accept();
      }
      accept_again_ = true;  // out of descriptors: at the next tick
    });
  }

  // Strangers must not take the places of the pods that watch this one. When there are too many
  // connections, one that has sent nothing is closed first, then one that has proven nothing (of a
  // stranger, or of a sidecar whose version is from before there were proofs), the oldest first.
  // In a job without a key no connection can prove anything: there the newest is closed.
  void Answer(const std::shared_ptr<HeartbeatEcho>& echo) {
    std::erase_if(echoes_, [](const auto& weak) { return weak.expired(); });
    if (echoes_.size() >= kMaxEchoes) {
      if (options_.key.empty()) return;
      auto oldest = std::find_if(echoes_.begin(), echoes_.end(),
                                 [](const auto& weak) { return !weak.lock()->has_beaten(); });
      if (oldest == echoes_.end()) {
        oldest = std::find_if(echoes_.begin(), echoes_.end(),
                              [](const auto& weak) { return !weak.lock()->proven(); });
      }
      if (oldest == echoes_.end()) return;
      oldest->lock()->Close();
      echoes_.erase(oldest);
    }
    echoes_.push_back(echo);
    echo->Start();
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
  std::set<std::string> proven_;  // uids of those of them that have proven the job's key
  std::vector<std::weak_ptr<HeartbeatEcho>> echoes_;
  const std::shared_ptr<EchoSubject> subject_ = std::make_shared<EchoSubject>();
  uint64_t missed_ = 0, refused_ = 0;
  bool accept_again_ = false;
};

}  // namespace

tl::expected<std::unique_ptr<Heartbeats>, std::string> Heartbeats::Listen(
    asio::io_context* loop, const HeartbeatOptions& options, HeartbeatCallbacks callbacks) {
  auto heartbeats = std::make_unique<HeartbeatsImpl>(loop, options, std::move(callbacks));
  const auto listens = heartbeats->Open();
  if (!listens) return tl::unexpected(listens.error());
  return heartbeats;
}

}  // namespace ringmaster::rendezvous
