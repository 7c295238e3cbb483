// The communicator: which algorithm on which path, and the numbers of operations.

#include "ringmaster/communicator.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "collectives/algorithms/reduce.h"
#include "collectives/algorithms/shm_group.h"
#include "collectives/algorithms/stream_group.h"
#include "collectives/communicator/bootstrap.h"
#include "collectives/element/element.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/liveness_monitor.h"

namespace ringmaster {
namespace communicator {
namespace {

using algorithms::Reduction;
using algorithms::ShmGroup;
using algorithms::StreamGroup;

Status Invalid(const std::string& message) { return Status(RM_ERR_INVALID, message); }

class CommunicatorImpl : public Communicator {
 public:
  CommunicatorImpl(transport::EndpointImpl* endpoint, const CommunicatorOptions& options)
      : rank_(options.rank),
        size_(static_cast<int>(options.peers.size())),
        epoch_(options.epoch),
        liveness_({options.epoch, options.rank, endpoint == nullptr ? "" : endpoint->job(),
                   options.peers, options.on_suspect}) {}

  // A rank that has completed everything says goodbye, and its peers go on with what they have;
  // else the closing of the connections ends their waits.
  ~CommunicatorImpl() override { liveness_.SayBye(op_); }

  Status Build(transport::EndpointImpl* endpoint, const CommunicatorOptions& options);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  uint64_t epoch() const override { return epoch_; }

  Status Allreduce(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op) override;
  Status Allgatherv(const void* send, void* recv, std::span<const size_t> bytes_by_rank) override;
  Status Broadcast(void* data, size_t bytes, int root) override;
  Status Barrier() override;

  void Abort(const std::string& why) override { liveness_.Abort(why); }
  const char* PathTo(int peer) const override;
  std::span<std::byte> ArenaBuffer(size_t bytes) override;

 private:
  using Blocks = std::vector<std::span<std::byte>>;

  // What every collective begins with: a dead view answers at once, a live one counts.
  Status Begin();
  Status AllreduceAcross(const void* in, void* out, size_t count, Reduction how);
  Status AllgatherAcross(const void* send, std::byte* recv, const Blocks& by_rank);
  bool shares_memory() const { return shm_ != nullptr; }
  bool leads() const { return leaders_ != nullptr; }

  const int rank_;
  const int size_;
  const uint64_t epoch_;
  transport::LivenessMonitor liveness_;

  // Constant after Build.
  std::vector<uint32_t> groups_;           // by rank
  std::vector<std::vector<int>> members_;  // by group, in rank order; the first one leads
  std::unique_ptr<ShmGroup> shm_;          // null: alone in its group
  std::unique_ptr<StreamGroup> leaders_;   // null: not a leader, or only one group
  std::shared_ptr<transport::Arena> arena_;

  uint64_t op_ = 0;  // collectives begun
  unsigned char nothing_ = 0;
};

Status CommunicatorImpl::Build(transport::EndpointImpl* endpoint,
                               const CommunicatorOptions& options) {
  if (endpoint == nullptr) {  // a job of one process: no peers, no memory but the caller's
    groups_ = {0};
    members_ = {{0}};
    return Status();
  }
  endpoint->KeepOnly(options.peers);
  Bootstrap bootstrap(endpoint, options, &liveness_);
  Status status = bootstrap.Run();
  if (!status.ok()) return status;
  groups_ = bootstrap.groups();
  members_.resize(1 + *std::max_element(groups_.begin(), groups_.end()));
  for (int rank = 0; rank < size_; ++rank)
    members_[groups_[static_cast<size_t>(rank)]].push_back(rank);
  arena_ = endpoint->arena();

  const std::vector<int>& mine = members_[groups_[static_cast<size_t>(rank_)]];
  if (mine.size() > 1) {
    std::vector<std::shared_ptr<transport::ArenaMap>> maps;
    for (int rank : mine) maps.push_back(bootstrap.maps()[static_cast<size_t>(rank)]);
    int self = static_cast<int>(std::find(mine.begin(), mine.end(), rank_) - mine.begin());
    shm_ = std::make_unique<ShmGroup>(&liveness_, epoch_, std::move(maps), self);
  }
  if (members_.size() > 1 && mine.front() == rank_) {
    std::vector<int> ranks;
    for (const auto& group : members_) ranks.push_back(group.front());
    leaders_ = std::make_unique<StreamGroup>(&liveness_, epoch_, ranks,
                                             static_cast<int>(groups_[static_cast<size_t>(rank_)]));
  }
  // Ranks of one pod share its cores; of other machines we know nothing and assume that they have
  // their own.
  const PeerEndpoint& own = options.peers[static_cast<size_t>(rank_)];
  auto host = [](const std::string& tcp) { return tcp.substr(0, tcp.rfind(':')); };
  long here =
      std::count_if(options.peers.begin(), options.peers.end(), [&](const PeerEndpoint& peer) {
        return host(peer.tcp) == host(own.tcp) || (!peer.shm.empty() && peer.pod == own.pod);
      });
  liveness_.SetSpin(std::max<long>(here, static_cast<long>(mine.size())) <=
                    static_cast<long>(std::thread::hardware_concurrency()));
  return Status();
}

Status CommunicatorImpl::Begin() {
  if (liveness_.aborted()) return liveness_.status();
  ++op_;
  return Status();
}

Status CommunicatorImpl::Allreduce(const void* in, void* out, size_t count, rm_dtype dtype,
                                   rm_op op) {
  size_t element_bytes = element::Size(dtype);
  if (element_bytes == 0)
    return Invalid("dtype " + std::to_string(dtype) + " is unknown: 0 to 7 are");
  if (!element::IsKnownOp(op))
    return Invalid("op " + std::to_string(op) + " is unknown: 0 to 4 are");
  if (count > SIZE_MAX / element_bytes / 4)
    return Invalid("count " + std::to_string(count) + " is too large");
  if (count > 0 && (in == nullptr || out == nullptr)) return Invalid("in and out must not be null");
  Status status = Begin();
  if (!status.ok() || count == 0) return status;
  if (size_ == 1) {
    if (in != out) std::memcpy(out, in, count * element_bytes);
    return Status();
  }
  Reduction how{dtype, op, op == RM_AVERAGE ? size_ : 1};
  if (members_.size() == 1) return shm_->Allreduce(in, out, count, how, op_);
  return AllreduceAcross(in, out, count, how);
}

// Sum inside each group to its leader, over the leaders, and back.
Status CommunicatorImpl::AllreduceAcross(const void* in, void* out, size_t count, Reduction how) {
  int divisor = how.divisor;
  Status status;
  if (shares_memory()) {
    how.divisor = 1;
    status = shm_->Allreduce(in, out, count, how, op_, true);
    in = out;
  }
  how.divisor = divisor;
  if (status.ok() && leads()) status = leaders_->Allreduce(in, out, count, how, op_);
  if (status.ok() && shares_memory()) {
    status = shm_->Broadcast(out, count * element::Size(how.dtype), 0, op_);
  }
  return status;
}

Status CommunicatorImpl::Allgatherv(const void* send, void* recv,
                                    std::span<const size_t> bytes_by_rank) {
  if (bytes_by_rank.size() != static_cast<size_t>(size_)) {
    return Invalid("bytes_by_rank has " + std::to_string(bytes_by_rank.size()) +
                   " entries, the view has " + std::to_string(size_) + " ranks");
  }
  size_t total = std::accumulate(bytes_by_rank.begin(), bytes_by_rank.end(), size_t{0});
  size_t own = bytes_by_rank[static_cast<size_t>(rank_)];
  if ((total > 0 && recv == nullptr) || (own > 0 && send == nullptr)) {
    return Invalid("send and recv must not be null");
  }
  Status status = Begin();
  if (!status.ok() || total == 0) return status;
  auto* base = static_cast<std::byte*>(recv);
  Blocks by_rank;
  for (size_t bytes : bytes_by_rank) {
    by_rank.emplace_back(base, bytes);
    base += bytes;
  }
  if (members_.size() == 1 && shares_memory()) return shm_->Allgatherv(send, by_rank, op_);
  return AllgatherAcross(send, static_cast<std::byte*>(recv), by_rank);
}

// Inside each group, then the groups' blocks around the leaders, then all of it back to the groups.
Status CommunicatorImpl::AllgatherAcross(const void* send, std::byte* recv, const Blocks& by_rank) {
  std::vector<Blocks> by_group(members_.size());
  for (size_t group = 0; group < members_.size(); ++group) {
    for (int rank : members_[group]) by_group[group].push_back(by_rank[static_cast<size_t>(rank)]);
  }
  Status status;
  if (shares_memory()) {
    status = shm_->Allgatherv(send, by_group[groups_[static_cast<size_t>(rank_)]], op_);
  } else {
    const std::span<std::byte>& own = by_rank[static_cast<size_t>(rank_)];
    if (!own.empty() && own.data() != send) std::memmove(own.data(), send, own.size());
  }
  if (status.ok() && leads()) status = leaders_->Allgatherv(by_group, op_);
  if (status.ok() && shares_memory() && members_.size() > 1) {
    size_t total = static_cast<size_t>(by_rank.back().data() + by_rank.back().size() - recv);
    status = shm_->Broadcast(recv, total, 0, op_);
  }
  return status;
}

Status CommunicatorImpl::Broadcast(void* data, size_t bytes, int root) {
  if (root < 0 || root >= size_) {
    return Invalid("root " + std::to_string(root) + " is no rank: the view has 0 to " +
                   std::to_string(size_ - 1));
  }
  if (bytes > 0 && data == nullptr) return Invalid("data must not be null");
  Status status = Begin();
  if (!status.ok() || size_ == 1 || bytes == 0) return status;
  uint32_t root_group = groups_[static_cast<size_t>(root)];
  uint32_t own_group = groups_[static_cast<size_t>(rank_)];
  if (shares_memory() && own_group == root_group) {
    const std::vector<int>& mine = members_[own_group];
    int local = static_cast<int>(std::find(mine.begin(), mine.end(), root) - mine.begin());
    status = shm_->Broadcast(data, bytes, local, op_);
  }
  if (status.ok() && leads())
    status = leaders_->Broadcast(data, bytes, static_cast<int>(root_group), op_);
  if (status.ok() && shares_memory() && own_group != root_group)
    status = shm_->Broadcast(data, bytes, 0, op_);
  return status;
}

Status CommunicatorImpl::Barrier() {
  Status status = Begin();
  if (!status.ok() || size_ == 1) return status;
  if (shares_memory()) status = shm_->Barrier(op_);
  if (members_.size() == 1) return status;
  Reduction nothing{RM_UINT8, RM_SUM, 1};
  if (status.ok() && leads()) status = leaders_->Allreduce(&nothing_, &nothing_, 0, nothing, op_);
  if (status.ok() && shares_memory()) status = shm_->Barrier(op_);
  return status;
}

const char* CommunicatorImpl::PathTo(int peer) const {
  if (peer < 0 || peer >= size_) return "";
  return peer == rank_ || groups_[static_cast<size_t>(peer)] == groups_[static_cast<size_t>(rank_)]
             ? "shm"
             : "tcp";
}

std::span<std::byte> CommunicatorImpl::ArenaBuffer(size_t bytes) {
  if (members_.size() != 1 || arena_ == nullptr) return {};
  return arena_->Buffer(bytes);
}

}  // namespace
}  // namespace communicator

Status Communicator::Create(Endpoint* endpoint, const CommunicatorOptions& options,
                            std::unique_ptr<Communicator>* out) {
  int size = static_cast<int>(options.peers.size());
  if (options.rank < 0 || options.rank >= size) {
    return communicator::Invalid("rank " + std::to_string(options.rank) + " is not among " +
                                 std::to_string(size) + " peers");
  }
  if (endpoint == nullptr && size > 1) {
    return communicator::Invalid("a view of " + std::to_string(size) + " ranks needs an endpoint");
  }
  auto* impl = static_cast<transport::EndpointImpl*>(endpoint);
  if (options.stop.stop_requested()) return Status(RM_ERR_EPOCH_MOVED, "stopped");
  Status status = impl == nullptr ? Status() : impl->listener().Begin(options.epoch);
  if (!status.ok()) return status;
  auto built = std::make_unique<communicator::CommunicatorImpl>(impl, options);
  std::stop_callback on_stop(options.stop,
                             [&] { built->Abort("stopped while the view was built"); });
  status = built->Build(impl, options);
  if (status.ok()) *out = std::move(built);
  return status;
}

}  // namespace ringmaster
