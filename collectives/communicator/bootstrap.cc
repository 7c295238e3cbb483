#include "collectives/communicator/bootstrap.h"

#include <poll.h>

#include <utility>

#include "collectives/communicator/group_agreement.h"
#include "collectives/transport/fault_point.h"

namespace ringmaster::communicator {

using transport::Clock;
using transport::Connection;
using transport::FaultPoint;
using transport::HelloReply;
using transport::ReplyKind;

namespace {

constexpr int kTickMillis = 20;

}  // namespace

Bootstrap::Bootstrap(transport::EndpointImpl* endpoint, const CommunicatorOptions& options,
                     transport::LivenessMonitor* liveness)
    : listener_(endpoint->listener()),
      options_(options),
      liveness_(liveness),
      deadline_(Clock::now() + options.connect_timeout),
      credentials_(endpoint->credentials()),
      arenas_(endpoint, options),
      probes_(options, credentials_, Clock::now(), deadline_),
      peers_(options.peers.size()) {
  const PeerDialer::Parts parts{.options = &options_,
                                .credentials = &credentials_,
                                .probes = &probes_,
                                .arenas = &arenas_,
                                .liveness = liveness_};
  for (int rank = 0; rank < options_.rank; ++rank) PeerOf(rank).dialer.emplace(parts, rank);
}

Status Bootstrap::Run() {
  if (credentials_.encrypt && !credentials_.key.present()) {
    return liveness_->Fail(RM_ERR_INVALID,
                           "collectives.encryption is On, and this job has no ring key to encrypt "
                           "with: it began before there was one");
  }
  if (Status s = ConnectAll(); !s.ok()) return s;
  FaultPoint("create_connected");
  std::vector<uint8_t> mapped;
  for (const auto& map : arenas_.maps()) mapped.push_back(map != nullptr);
  Status status = AgreeOnGroups(liveness_, {options_.rank, size()}, options_.epoch, deadline_,
                                mapped, &groups_);
  if (status.ok()) FaultPoint("create_before_return");
  return status;
}

Status Bootstrap::ConnectAll() {
  missing_ = size() - 1;
  while (missing_ > 0) {
    if (liveness_->aborted()) return liveness_->status();
    Status status = LookForNewerEpoch();
    for (int rank = 0; status.ok() && rank < options_.rank; ++rank) {
      PeerDialer& dialer = *PeerOf(rank).dialer;
      if (dialer.MayDial(Clock::now())) status = dialer.Dial();
    }
    if (status.ok()) TakeArrivals();
    if (status.ok() && missing_ > 0) status = WaitForEvents();
    if (!status.ok()) return status;
  }
  return Status();
}

void Bootstrap::Ready(int rank, std::unique_ptr<Connection> connection) {
  PeerOf(rank).ready = true;
  liveness_->SetConnection(rank, std::move(connection));
  --missing_;
}

// ---- peers that dial this rank ----

void Bootstrap::TakeArrivals() {
  for (auto& arrival : listener_.Take(options_.epoch)) Welcome(std::move(arrival));
}

void Bootstrap::Welcome(transport::Arrival arrival) {
  int rank = static_cast<int>(arrival.hello.rank);
  // A Hello that doesn't fit this view (only higher ranks dial this one), or a second attempt of a
  // rank that is connected already: the connection is closed, and the dialer tries again or gives
  // up.
  if (rank <= options_.rank || rank >= size()) return;
  const uint32_t wanted = arrival.wanted_rank;
  if (wanted != transport::kAnyRank && wanted != static_cast<uint32_t>(options_.rank)) return;
  Peer& peer = PeerOf(rank);
  if (peer.ready) return;
  HelloReply reply;
  reply.epoch = options_.epoch;
  const bool share = arrival.is_unix && arenas_.on();
  if (arrival.is_unix && !share) {
    reply.kind = ReplyKind::kUseTcp;
    (void)SendSmall(arrival.fd.get(), &reply, sizeof(reply));
    return;
  }
  int attached = -1;
  if (share) {
    const Status mapped =
        arenas_.Map(rank, arrival.arena, arrival.hello.arena_id, arrival.hello.arena_bytes);
    if (!mapped.ok()) peer.trouble = mapped.message();
    reply.arena_id = arenas_.own().id();
    reply.arena_bytes = arenas_.own().bytes();
    attached = arenas_.own().fd();
  }
  if (!SendSmall(arrival.fd.get(), &reply, sizeof(reply), attached)) return;
  Ready(rank, std::make_unique<Connection>(std::move(arrival.fd), rank, arrival.keys));
}

// ---- waiting ----

Status Bootstrap::WaitForEvents() {
  std::vector<pollfd> polls = {{listener_.event(), POLLIN, 0},
                               {liveness_->abort_event(), POLLIN, 0}};
  std::vector<int> ranks;
  for (int rank = 0; rank < options_.rank; ++rank) {
    const std::optional<pollfd> awaited = PeerOf(rank).dialer->Awaited();
    if (!awaited) continue;
    polls.push_back(*awaited);
    ranks.push_back(rank);
  }
  const bool may_dial = ranks.size() < static_cast<size_t>(missing_);
  const int limit = may_dial ? 5 : kTickMillis;
  poll(polls.data(), polls.size(), transport::PollMillis(deadline_, limit));
  if (liveness_->aborted()) return liveness_->status();
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (polls[i + 2].revents == 0) continue;
    PeerDialer& dialer = *PeerOf(ranks[i]).dialer;
    if (Status status = dialer.OnEvent(); !status.ok()) return status;
    if (dialer.connected()) Ready(ranks[i], dialer.TakeConnection());
  }
  if (Clock::now() >= deadline_) return TimeoutStatus();
  return LookForTheDead();
}

// The connection to a member that dies is closed, so connected members show it by themselves. Those
// that should have dialled this rank and have not are probed, one at a time.
Status Bootstrap::LookForTheDead() {
  if (!probes_.TakeDue(Clock::now())) return Status();
  if (Status status = liveness_->CheckConnections(0); !status.ok()) return status;
  const std::optional<int> rank =
      probes_.NextOf([this](int peer) { return peer > options_.rank && !PeerOf(peer).ready; });
  if (!rank || probes_.MayLive(*rank)) return Status();
  return liveness_->Suspect(*rank, "no answer while the view was built");
}

Status Bootstrap::LookForNewerEpoch() {
  const uint64_t newest = listener_.Newest();
  if (newest <= options_.epoch) return Status();
  return liveness_->Fail(RM_ERR_EPOCH_MOVED,
                         "a peer is already in epoch " + std::to_string(newest));
}

Status Bootstrap::TimeoutStatus() {
  std::string ranks;
  std::string trouble;
  int absent = -1;
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& peer = PeerOf(rank);
    if (rank == options_.rank || peer.ready) continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    if (absent < 0) absent = rank;
    if (trouble.empty()) trouble = peer.dialer ? peer.dialer->trouble() : peer.trouble;
  }
  if (absent >= 0) liveness_->ReportBrokenLink(absent, "no connection to it could be made");
  return liveness_->Fail(RM_ERR_TIMEOUT, "epoch " + std::to_string(options_.epoch) +
                                             ": no connection with rank " + ranks + " within " +
                                             std::to_string(options_.connect_timeout.count()) +
                                             " ms" + (trouble.empty() ? "" : " (" + trouble + ")"));
}

}  // namespace ringmaster::communicator
