// CommunicatorImpl has the connections of a view and counts its operations. Each call checks its
// arguments and hands the collective to the Hierarchy.

#include "ringmaster/communicator.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "collectives/communicator/arguments.h"
#include "collectives/communicator/bootstrap.h"
#include "collectives/communicator/hierarchy.h"
#include "collectives/communicator/wide_average.h"
#include "collectives/element/element.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/liveness_monitor.h"

namespace ringmaster {
namespace communicator {
namespace {

using algorithms::Reduction;

// The operations of a subset are numbered from here on. Both ranks of a connection count the calls
// of a subset alike, so the numbers in their frames match. A goodbye carries the number of an
// operation of the whole view, which is lower: so a rank that waits in a subset takes every peer
// that has left for one that left too early, and its wait ends, unless what it waits for is there.
constexpr uint64_t kSubsetOperations = uint64_t{1} << 62;

class CommunicatorImpl : public Communicator {
 public:
  CommunicatorImpl(transport::EndpointImpl* endpoint, const CommunicatorOptions& options)
      : place_{options.rank, static_cast<int>(options.peers.size())},
        epoch_(options.epoch),
        liveness_(std::make_shared<transport::LivenessMonitor>(transport::LivenessMonitor::Options{
            options.epoch, options.rank,
            endpoint == nullptr ? transport::RingCredentials() : endpoint->credentials(),
            options.peers, options.probe_limit, options.on_suspect, options.on_broken_link,
            [endpoint, epoch = options.epoch] {
              if (endpoint != nullptr) endpoint->listener().GiveUp(epoch);
            }})) {}
  // A subset of `whole`.
  CommunicatorImpl(const CommunicatorImpl& whole, std::span<const int> ranks, int channel);

  // Unless the view is dead, says goodbye with the number of the last operation: peers can still
  // complete the operations up to that one. Without a goodbye the closing of the connections ends
  // their waits.
  ~CommunicatorImpl() override {
    if (!is_subset_) liveness_->SendBye(op_);
  }

  Status Build(transport::EndpointImpl* endpoint, const CommunicatorOptions& options);

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }
  uint64_t epoch() const override { return epoch_; }

  Status Allreduce(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op) override;
  Status Allgatherv(const void* send, void* recv, std::span<const size_t> bytes_by_rank) override;
  Status Broadcast(void* data, size_t bytes, int root) override;
  Status ReduceScatter(const void* in, void* out, std::span<const size_t> counts, rm_dtype dtype,
                       rm_op op) override;
  Status Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) override;
  Status Barrier() override;

  Status Subset(std::span<const int> ranks, int channel,
                std::unique_ptr<Communicator>* out) override;
  Status CheckPeers() override;
  void Abort(const std::string& why) override { liveness_->Abort(why); }
  const char* PathTo(int peer) const override;
  std::span<std::byte> ArenaBuffer(size_t bytes) override;

 private:
  // Begins a collective: fails at once if the view is dead, else counts the operation.
  Status Begin();
  Status AverageWide(const void* in, void* out, size_t count, rm_dtype dtype);
  Status AverageWideBlocks(const void* in, void* out, std::span<const size_t> counts,
                           rm_dtype dtype);
  // Over shared memory halves are added up and divided at once, as float.
  bool NeedsWideAverage(rm_dtype dtype, rm_op op) const {
    const bool is_half = element::SumType(dtype) == RM_FLOAT32;
    return WideAverage::Needed(dtype, op, place_.size) &&
           !(is_half && hierarchy_->groups().groups() == 1);
  }
  Reduction How(rm_dtype dtype, rm_op op) const {
    return {dtype, op, op == RM_AVERAGE ? place_.size : 1};
  }

  const RankAndSize place_;
  const uint64_t epoch_;
  const std::shared_ptr<transport::LivenessMonitor> liveness_;
  const bool is_subset_ = false;

  // Constant after Build.
  std::vector<std::shared_ptr<transport::ArenaMap>> maps_;  // by rank; null: not mapped
  std::optional<Hierarchy> hierarchy_;
  std::shared_ptr<transport::Arena> arena_;  // null: none to lend

  uint64_t op_ = 0;  // collectives begun
};

// How many ranks share this one's cores: those with the same host address or in the same pod do. Of
// all others nothing is known, and they are assumed to have cores of their own.
long RanksHere(const CommunicatorOptions& options) {
  const PeerEndpoint& own = options.peers[static_cast<size_t>(options.rank)];
  auto host = [](const std::string& tcp) { return tcp.substr(0, tcp.rfind(':')); };
  return std::count_if(options.peers.begin(), options.peers.end(), [&](const PeerEndpoint& peer) {
    return host(peer.tcp) == host(own.tcp) || (!peer.shm.empty() && peer.pod == own.pod);
  });
}

// Divides the memory that begins at `at` into blocks of these sizes, one after the other.
template <typename Byte>
std::vector<std::span<Byte>> BlocksOf(Byte* at, std::span<const size_t> bytes) {
  std::vector<std::span<Byte>> blocks;
  for (size_t block : bytes) {
    blocks.emplace_back(at, block);
    if (at != nullptr) at += block;
  }
  return blocks;
}

Status CommunicatorImpl::Build(transport::EndpointImpl* endpoint,
                               const CommunicatorOptions& options) {
  if (endpoint == nullptr) {  // a view of one rank has no peers and needs no arena
    hierarchy_.emplace(liveness_.get(), epoch_, GroupMap::Apart(1, 0), std::vector<int>{0}, maps_,
                       0);
    return Status();
  }
  endpoint->KeepOnly(options.peers);
  Bootstrap bootstrap(endpoint, options, liveness_.get());
  Status status = bootstrap.Run();
  if (!status.ok()) return status;
  arena_ = endpoint->arena();
  std::vector<int> ranks(static_cast<size_t>(place_.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  maps_ = bootstrap.maps();
  hierarchy_.emplace(liveness_.get(), epoch_, GroupMap(bootstrap.groups(), place_.rank),
                     std::move(ranks), maps_, 0);
  const auto sharing = static_cast<long>(hierarchy_->groups().own_members().size());
  liveness_->SetSpin(std::max(RanksHere(options), sharing) <=
                     static_cast<long>(std::thread::hardware_concurrency()));
  return Status();
}

// Without a channel each rank of a subset is a group of its own, and doesn't use the arenas. So it
// is where some of its ranks don't share memory: libraries before these channels do so everywhere,
// and those that share memory are all of one layout.
CommunicatorImpl::CommunicatorImpl(const CommunicatorImpl& whole, std::span<const int> ranks,
                                   int channel)
    : place_{static_cast<int>(std::find(ranks.begin(), ranks.end(), whole.rank()) - ranks.begin()),
             static_cast<int>(ranks.size())},
      epoch_(whole.epoch_),
      liveness_(whole.liveness_),
      is_subset_(true),
      op_(kSubsetOperations) {
  hierarchy_.emplace(liveness_.get(), epoch_,
                     channel != 0 && whole.hierarchy_->groups().AreOne(ranks)
                         ? GroupMap::Together(ranks.size(), place_.rank)
                         : GroupMap::Apart(ranks.size(), place_.rank),
                     std::vector<int>(ranks.begin(), ranks.end()), whole.maps_, channel);
}

Status CommunicatorImpl::Subset(std::span<const int> ranks, int channel,
                                std::unique_ptr<Communicator>* out) {
  if (Status s = CheckSubset(place_, is_subset_, ranks, channel); !s.ok()) return s;
  if (liveness_->aborted()) return liveness_->status();
  *out = std::make_unique<CommunicatorImpl>(*this, ranks, channel);
  return Status();
}

Status CommunicatorImpl::Begin() {
  if (liveness_->aborted()) return liveness_->status();
  ++op_;
  return Status();
}

Status CommunicatorImpl::Allreduce(const void* in, void* out, size_t count, rm_dtype dtype,
                                   rm_op op) {
  if (Status s = CheckAllreduce(in, out, count, dtype, op); !s.ok()) return s;
  if (NeedsWideAverage(dtype, op)) return AverageWide(in, out, count, dtype);
  Status status = Begin();
  if (!status.ok() || count == 0) return status;
  if (place_.size == 1) {
    if (in != out) std::memcpy(out, in, count * element::Size(dtype));
    return Status();
  }
  return hierarchy_->Allreduce(in, out, count, How(dtype, op), op_);
}

Status CommunicatorImpl::AverageWide(const void* in, void* out, size_t count, rm_dtype dtype) {
  WideAverage wide(dtype, place_.size);
  if (Status s = wide.Take(in, count); !s.ok()) return s;
  const Status status = Allreduce(wide.taken(), wide.taken(), count, wide.dtype(), wide.op());
  if (status.ok()) wide.Give(wide.taken(), out, count);
  return status;
}

Status CommunicatorImpl::Allgatherv(const void* send, void* recv,
                                    std::span<const size_t> bytes_by_rank) {
  if (Status s = CheckAllgatherv(place_, send, recv, bytes_by_rank); !s.ok()) return s;
  const size_t total = std::accumulate(bytes_by_rank.begin(), bytes_by_rank.end(), size_t{0});
  Status status = Begin();
  if (!status.ok() || total == 0) return status;
  return hierarchy_->Allgatherv(send, BlocksOf(static_cast<std::byte*>(recv), bytes_by_rank), op_);
}

Status CommunicatorImpl::Broadcast(void* data, size_t bytes, int root) {
  if (Status s = CheckBroadcast(place_, data, bytes, root); !s.ok()) return s;
  Status status = Begin();
  if (!status.ok() || place_.size == 1 || bytes == 0) return status;
  return hierarchy_->Broadcast(data, bytes, root, op_);
}

Status CommunicatorImpl::ReduceScatter(const void* in, void* out, std::span<const size_t> counts,
                                       rm_dtype dtype, rm_op op) {
  if (Status s = CheckReduceScatter(place_, in, out, counts, dtype, op); !s.ok()) return s;
  const size_t count = std::accumulate(counts.begin(), counts.end(), size_t{0});
  if (NeedsWideAverage(dtype, op)) {
    return AverageWideBlocks(in, out, counts, dtype);
  }
  Status status = Begin();
  if (!status.ok() || count == 0) return status;
  if (place_.size == 1) {
    if (in != out) std::memcpy(out, in, count * element::Size(dtype));
    return Status();
  }
  std::vector<size_t> bytes(counts.begin(), counts.end());
  for (size_t& block : bytes) block *= element::Size(dtype);
  return hierarchy_->ReduceScatter(BlocksOf(static_cast<const std::byte*>(in), bytes), out,
                                   How(dtype, op), op_);
}

Status CommunicatorImpl::AverageWideBlocks(const void* in, void* out,
                                           std::span<const size_t> counts, rm_dtype dtype) {
  const size_t count = std::accumulate(counts.begin(), counts.end(), size_t{0});
  const size_t own = counts[static_cast<size_t>(place_.rank)];
  WideAverage wide(dtype, place_.size);
  if (Status s = wide.Take(in, count, own); !s.ok()) return s;
  const Status status = ReduceScatter(wide.taken(), wide.beside(), counts, wide.dtype(), wide.op());
  if (status.ok()) wide.Give(wide.beside(), out, own);
  return status;
}

Status CommunicatorImpl::Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) {
  if (Status s = CheckAlltoallv(place_, send, recv, bytes); !s.ok()) return s;
  const size_t n = static_cast<size_t>(place_.size);
  const size_t self = static_cast<size_t>(place_.rank);
  std::vector<size_t> received(n);
  for (size_t rank = 0; rank < n; ++rank) received[rank] = bytes[rank * n + self];
  Status status = Begin();
  if (!status.ok()) return status;
  return hierarchy_->Alltoallv(
      BlocksOf(static_cast<const std::byte*>(send), bytes.subspan(self * n, n)),
      BlocksOf(static_cast<std::byte*>(recv), received), bytes, op_);
}

Status CommunicatorImpl::Barrier() {
  Status status = Begin();
  if (!status.ok() || place_.size == 1) return status;
  return hierarchy_->Barrier(op_);
}

// A peer that has left after the operations of which this rank knows has not taken part in what
// this rank waits for, or its part has ended with it.
Status CommunicatorImpl::CheckPeers() {
  if (liveness_->aborted()) return liveness_->status();
  Status status = liveness_->CheckConnections(op_ + 1);
  return status.ok() ? liveness_->CheckLinks() : status;
}

const char* CommunicatorImpl::PathTo(int peer) const {
  if (peer < 0 || peer >= place_.size) return "";
  const GroupMap& groups = hierarchy_->groups();
  return groups.GroupOf(peer) == groups.own() ? "shm" : "tcp";
}

std::span<std::byte> CommunicatorImpl::ArenaBuffer(size_t bytes) {
  if (hierarchy_->groups().groups() != 1 || arena_ == nullptr) return {};
  return arena_->Buffer(bytes);
}

}  // namespace
}  // namespace communicator

Status Communicator::Create(Endpoint* endpoint, const CommunicatorOptions& options,
                            std::unique_ptr<Communicator>* out) {
  if (Status s = communicator::CheckView(endpoint, options); !s.ok()) return s;
  auto* impl = static_cast<transport::EndpointImpl*>(endpoint);
  if (options.stop.stop_requested()) return Status(RM_ERR_EPOCH_MOVED, "stopped");
  Status status = impl == nullptr ? Status() : impl->listener().Begin(options.epoch);
  if (!status.ok()) return status;
  auto built = std::make_unique<communicator::CommunicatorImpl>(impl, options);
  // Captures the address and not `built`: a stop may come while `built` is moved to *out.
  std::stop_callback on_stop(
      options.stop, [view = built.get()] { view->Abort("stopped while the view was built"); });
  status = built->Build(impl, options);
  if (status.ok()) *out = std::move(built);
  return status;
}

}  // namespace ringmaster
