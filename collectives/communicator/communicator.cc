// The communicator: which algorithm on which path, and the numbers of operations.

#include "ringmaster/communicator.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
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

// Operations of subsets are counted from here: they are no others than the two ranks of a
// connection expect, and no rank has said goodbye after them.
constexpr uint64_t kSubsetOperations = uint64_t{1} << 62;

class CommunicatorImpl : public Communicator {
 public:
  CommunicatorImpl(transport::EndpointImpl* endpoint, const CommunicatorOptions& options)
      : rank_(options.rank),
        size_(static_cast<int>(options.peers.size())),
        epoch_(options.epoch),
        liveness_(std::make_shared<transport::LivenessMonitor>(transport::LivenessMonitor::Options{
            options.epoch, options.rank,
            endpoint == nullptr ? transport::Credentials() : endpoint->credentials(), options.peers,
            options.on_suspect, options.on_broken_link, [endpoint, epoch = options.epoch] {
              if (endpoint != nullptr) endpoint->listener().GiveUp(epoch);
            }})) {}
  // A subset of `whole`.
  CommunicatorImpl(const CommunicatorImpl& whole, std::span<const int> ranks);

  // A rank that has completed everything says goodbye, and its peers go on with what they have;
  // else the closing of the connections ends their waits.
  ~CommunicatorImpl() override {
    if (!is_subset_) liveness_->SendBye(op_);
  }

  Status Build(transport::EndpointImpl* endpoint, const CommunicatorOptions& options);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  uint64_t epoch() const override { return epoch_; }

  Status Allreduce(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op) override;
  Status Allgatherv(const void* send, void* recv, std::span<const size_t> bytes_by_rank) override;
  Status Broadcast(void* data, size_t bytes, int root) override;
  Status ReduceScatter(const void* in, void* out, std::span<const size_t> counts, rm_dtype dtype,
                       rm_op op) override;
  Status Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) override;
  Status Barrier() override;

  Status Subset(std::span<const int> ranks, std::unique_ptr<Communicator>* out) override;
  void Abort(const std::string& why) override { liveness_->Abort(why); }
  const char* PathTo(int peer) const override;
  std::span<std::byte> ArenaBuffer(size_t bytes) override;

 private:
  using Blocks = std::vector<std::span<std::byte>>;
  using ConstBlocks = std::vector<std::span<const std::byte>>;

  // What every collective begins with: a dead view answers at once, a live one counts.
  Status Begin();
  Status AverageWide(const void* in, void* out, size_t count, rm_dtype dtype);
  Status AllreduceAcross(const void* in, void* out, size_t count, Reduction how);
  Status CheckReduction(size_t count, rm_dtype dtype, rm_op op) const;
  Status AverageWideBlocks(const void* in, void* out, std::span<const size_t> counts,
                           rm_dtype dtype);
  Status ReduceScatterAcross(const ConstBlocks& by_rank, void* out, Reduction how);
  // Blocks of the ranks of the own group.
  template <typename Span>
  std::vector<Span> OfOwnGroup(const std::vector<Span>& by_rank) const {
    std::vector<Span> blocks;
    for (int rank : own_group()) blocks.push_back(by_rank[static_cast<size_t>(rank)]);
    return blocks;
  }
  const std::vector<int>& own_group() const {
    return members_[groups_[static_cast<size_t>(rank_)]];
  }
  Status AllgatherAcross(const void* send, std::byte* recv, const Blocks& by_rank);
  bool shares_memory() const { return shm_ != nullptr; }
  bool leads() const { return leaders_ != nullptr; }

  const int rank_;
  const int size_;
  const uint64_t epoch_;
  const std::shared_ptr<transport::LivenessMonitor> liveness_;
  const bool is_subset_ = false;

  // Constant after Build.
  std::vector<uint32_t> groups_;           // by rank
  std::vector<std::vector<int>> members_;  // by group, in rank order; the first one leads
  std::unique_ptr<ShmGroup> shm_;          // null: alone in its group
  std::unique_ptr<StreamGroup> leaders_;   // null: not a leader, or only one group
  std::unique_ptr<StreamGroup> everyone_;  // null: only one group
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
  Bootstrap bootstrap(endpoint, options, liveness_.get());
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
    shm_ = std::make_unique<ShmGroup>(liveness_.get(), epoch_, std::move(maps), self);
  }
  if (members_.size() > 1 && mine.front() == rank_) {
    std::vector<int> ranks;
    for (const auto& group : members_) ranks.push_back(group.front());
    leaders_ = std::make_unique<StreamGroup>(liveness_.get(), epoch_, ranks,
                                             static_cast<int>(groups_[static_cast<size_t>(rank_)]));
  }
  if (members_.size() > 1) {
    std::vector<int> ranks(static_cast<size_t>(size_));
    std::iota(ranks.begin(), ranks.end(), 0);
    everyone_ = std::make_unique<StreamGroup>(liveness_.get(), epoch_, ranks, rank_);
  }
  // Ranks of one pod share its cores; of other machines we know nothing and assume that they have
  // their own.
  const PeerEndpoint& own = options.peers[static_cast<size_t>(rank_)];
  auto host = [](const std::string& tcp) { return tcp.substr(0, tcp.rfind(':')); };
  long here =
      std::count_if(options.peers.begin(), options.peers.end(), [&](const PeerEndpoint& peer) {
        return host(peer.tcp) == host(own.tcp) || (!peer.shm.empty() && peer.pod == own.pod);
      });
  liveness_->SetSpin(std::max<long>(here, static_cast<long>(mine.size())) <=
                     static_cast<long>(std::thread::hardware_concurrency()));
  return Status();
}

// Each rank is a group of its own: the view's flags and slots count calls that all its ranks make.
CommunicatorImpl::CommunicatorImpl(const CommunicatorImpl& whole, std::span<const int> ranks)
    : rank_(static_cast<int>(std::find(ranks.begin(), ranks.end(), whole.rank_) - ranks.begin())),
      size_(static_cast<int>(ranks.size())),
      epoch_(whole.epoch_),
      liveness_(whole.liveness_),
      is_subset_(true),
      groups_(ranks.size()),
      op_(kSubsetOperations) {
  std::iota(groups_.begin(), groups_.end(), 0u);
  for (int rank = 0; rank < size_; ++rank) members_.push_back({rank});
  if (size_ == 1) return;
  const std::vector<int> members(ranks.begin(), ranks.end());
  leaders_ = std::make_unique<StreamGroup>(liveness_.get(), epoch_, members, rank_);
  everyone_ = std::make_unique<StreamGroup>(liveness_.get(), epoch_, members, rank_);
}

Status CommunicatorImpl::Subset(std::span<const int> ranks, std::unique_ptr<Communicator>* out) {
  const bool ascending =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  const bool has_self = std::find(ranks.begin(), ranks.end(), rank_) != ranks.end();
  if (is_subset_ || !ascending || !has_self || ranks.front() < 0 || ranks.back() >= size_) {
    return Invalid("a subset must be ascending ranks of the view, rank " + std::to_string(rank_) +
                   " among them");
  }
  if (liveness_->aborted()) return liveness_->status();
  *out = std::make_unique<CommunicatorImpl>(*this, ranks);
  return Status();
}

Status CommunicatorImpl::Begin() {
  if (liveness_->aborted()) return liveness_->status();
  ++op_;
  return Status();
}

Status CommunicatorImpl::CheckReduction(size_t count, rm_dtype dtype, rm_op op) const {
  const size_t element_bytes = element::Size(dtype);
  if (element_bytes == 0)
    return Invalid("dtype " + std::to_string(dtype) + " is unknown: 0 to " +
                   std::to_string(element::kTypes - 1) + " are known");
  if (!element::IsKnownOp(op))
    return Invalid("op " + std::to_string(op) + " is unknown: 0 to 4 are known");
  if (op == RM_AVERAGE && dtype == RM_BOOL) return Invalid("bool has no average");
  if (count > SIZE_MAX / element_bytes / 4)
    return Invalid("count " + std::to_string(count) + " is too large");
  return Status();
}

Status CommunicatorImpl::Allreduce(const void* in, void* out, size_t count, rm_dtype dtype,
                                   rm_op op) {
  if (Status s = CheckReduction(count, dtype, op); !s.ok()) return s;
  size_t element_bytes = element::Size(dtype);
  if (count > 0 && (in == nullptr || out == nullptr)) return Invalid("in and out must not be null");
  if (op == RM_AVERAGE && size_ > 1 && element::SumType(dtype) != dtype) {
    return AverageWide(in, out, count, dtype);
  }
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

// Their sum may overflow where their average doesn't, so it is made in a wider type: of halves the
// sum, which a float holds; bf16 goes as far as float does, so each is divided first.
Status CommunicatorImpl::AverageWide(const void* in, void* out, size_t count, rm_dtype dtype) {
  const rm_dtype wide_type = element::SumType(dtype);
  const std::unique_ptr<std::byte[]> wide(new (std::nothrow)
                                              std::byte[count * element::Size(wide_type)]);
  if (wide == nullptr) return Status(RM_ERR_OUT_OF_MEMORY, "no memory for an average");
  const bool divide_first = dtype == RM_BFLOAT16;
  element::Widen(in, wide.get(), count, dtype,
                 divide_first ? 1.0f / static_cast<float>(size_) : 1.0f);
  Status status =
      Allreduce(wide.get(), wide.get(), count, wide_type, divide_first ? RM_SUM : RM_AVERAGE);
  if (status.ok()) element::Narrow(wide.get(), out, count, dtype);
  return status;
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

// ---- a block for each rank

Status CommunicatorImpl::ReduceScatter(const void* in, void* out, std::span<const size_t> counts,
                                       rm_dtype dtype, rm_op op) {
  if (counts.size() != static_cast<size_t>(size_)) {
    return Invalid("counts has " + std::to_string(counts.size()) + " entries, the view has " +
                   std::to_string(size_) + " ranks");
  }
  const size_t count = std::accumulate(counts.begin(), counts.end(), size_t{0});
  if (Status s = CheckReduction(count, dtype, op); !s.ok()) return s;
  const size_t own = counts[static_cast<size_t>(rank_)];
  if ((count > 0 && in == nullptr) || (own > 0 && out == nullptr)) {
    return Invalid("in and out must not be null");
  }
  if (op == RM_AVERAGE && size_ > 1 && element::SumType(dtype) != dtype) {
    return AverageWideBlocks(in, out, counts, dtype);
  }
  Status status = Begin();
  if (!status.ok() || count == 0) return status;
  const auto* at = static_cast<const std::byte*>(in);
  ConstBlocks by_rank;
  for (size_t elements : counts) {
    by_rank.emplace_back(at, elements * element::Size(dtype));
    at += by_rank.back().size();
  }
  if (size_ == 1) {
    if (in != out) std::memcpy(out, in, by_rank[0].size());
    return Status();
  }
  const Reduction how{dtype, op, op == RM_AVERAGE ? size_ : 1};
  if (members_.size() == 1) return shm_->ReduceScatter(by_rank, out, how, op_);
  return ReduceScatterAcross(by_rank, out, how);
}

// As AverageWide.
Status CommunicatorImpl::AverageWideBlocks(const void* in, void* out,
                                           std::span<const size_t> counts, rm_dtype dtype) {
  const rm_dtype wide_type = element::SumType(dtype);
  const size_t count = std::accumulate(counts.begin(), counts.end(), size_t{0});
  const size_t own = counts[static_cast<size_t>(rank_)];
  const size_t bytes = (count + own) * element::Size(wide_type);
  const std::unique_ptr<std::byte[]> wide(new (std::nothrow) std::byte[bytes + 1]);
  if (wide == nullptr) return Status(RM_ERR_OUT_OF_MEMORY, "no memory for an average");
  std::byte* result = wide.get() + count * element::Size(wide_type);
  const bool divide_first = dtype == RM_BFLOAT16;
  element::Widen(in, wide.get(), count, dtype,
                 divide_first ? 1.0f / static_cast<float>(size_) : 1.0f);
  Status status =
      ReduceScatter(wide.get(), result, counts, wide_type, divide_first ? RM_SUM : RM_AVERAGE);
  if (status.ok()) element::Narrow(result, out, own, dtype);
  return status;
}

// The blocks are put in the groups' order first, so that a group's are one stretch: reduced to the
// group's first rank, scattered over the first ranks, and in each group to those that they are for.
Status CommunicatorImpl::ReduceScatterAcross(const ConstBlocks& by_rank, void* out, Reduction how) {
  std::vector<std::byte> arranged;
  std::vector<size_t> begins;
  for (const auto& group : members_) {
    begins.push_back(arranged.size());
    for (int rank : group) {
      const auto& block = by_rank[static_cast<size_t>(rank)];
      arranged.insert(arranged.end(), block.begin(), block.end());
    }
  }
  begins.push_back(arranged.size());
  Status status;
  if (shares_memory()) {
    Reduction inside = how;
    inside.divisor = 1;
    status = shm_->Allreduce(arranged.data(), arranged.data(),
                             arranged.size() / element::Size(how.dtype), inside, op_, true);
  }
  const size_t group = groups_[static_cast<size_t>(rank_)];
  std::byte* mine = arranged.data() + begins[group];
  if (status.ok() && leads()) {
    ConstBlocks by_group;
    for (size_t g = 0; g < members_.size(); ++g) {
      by_group.emplace_back(arranged.data() + begins[g], begins[g + 1] - begins[g]);
    }
    status = leaders_->ReduceScatter(by_group, shares_memory() ? mine : out, how, op_);
  }
  if (!status.ok() || !shares_memory()) return status;
  // From the first rank of the group alone.
  ConstBlocks send;
  size_t longest = 0;
  for (const auto& block : OfOwnGroup(by_rank)) {
    send.emplace_back(mine, leads() ? block.size() : 0);
    mine += block.size();
    longest = std::max(longest, block.size());
  }
  Blocks recv(own_group().size());
  recv[0] = {static_cast<std::byte*>(out), by_rank[static_cast<size_t>(rank_)].size()};
  return shm_->Alltoallv(send, recv, longest, op_);
}

Status CommunicatorImpl::Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) {
  const size_t n = static_cast<size_t>(size_);
  const size_t self = static_cast<size_t>(rank_);
  if (bytes.size() != n * n) {
    return Invalid("bytes has " + std::to_string(bytes.size()) + " entries, the view has " +
                   std::to_string(n) + " ranks");
  }
  ConstBlocks to;
  Blocks from;
  const auto* send_at = static_cast<const std::byte*>(send);
  auto* recv_at = static_cast<std::byte*>(recv);
  size_t sent = 0, received = 0;
  for (size_t k = 0; k < n; ++k) {
    sent += bytes[self * n + k];
    received += bytes[k * n + self];
  }
  if ((sent > 0 && send == nullptr) || (received > 0 && recv == nullptr)) {
    return Invalid("send and recv must not be null");
  }
  for (size_t k = 0; k < n; ++k) {
    to.emplace_back(send_at, bytes[self * n + k]);
    from.emplace_back(recv_at, bytes[k * n + self]);
    if (send_at != nullptr) send_at += bytes[self * n + k];
    if (recv_at != nullptr) recv_at += bytes[k * n + self];
  }
  Status status = Begin();
  if (!status.ok()) return status;
  if (shares_memory()) {
    size_t longest = 0;
    for (int i : own_group()) {
      for (int k : own_group()) {
        if (i == k) continue;
        longest = std::max(longest, bytes[static_cast<size_t>(i) * n + static_cast<size_t>(k)]);
      }
    }
    status = shm_->Alltoallv(OfOwnGroup(to), OfOwnGroup(from), longest, op_);
  } else if (!to[self].empty()) {
    std::memmove(from[self].data(), to[self].data(), to[self].size());
  }
  if (!status.ok() || everyone_ == nullptr) return status;
  for (int rank : own_group()) {
    to[static_cast<size_t>(rank)] = {};
    from[static_cast<size_t>(rank)] = {};
  }
  return everyone_->Alltoallv(to, from, op_);
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
