#include "collectives/communicator/hierarchy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/element/element.h"

namespace ringmaster::communicator {

using algorithms::Reduction;
using algorithms::ShmGroup;
using algorithms::StreamGroup;

Hierarchy::Hierarchy(transport::LivenessMonitor* liveness, uint64_t epoch, GroupMap groups,
                     std::vector<int> ranks,
                     const std::vector<std::shared_ptr<transport::ArenaMap>>& maps, int channel)
    : groups_(std::move(groups)) {
  if (groups_.own_members().size() > 1) {
    std::vector<transport::ArenaChannel> channels;
    for (const int rank : groups_.OfOwn(ranks))
      channels.emplace_back(maps[static_cast<size_t>(rank)], channel);
    shm_ = std::make_unique<ShmGroup>(liveness, epoch, std::move(channels),
                                      groups_.PlaceInOwn(groups_.self()));
  }
  if (groups_.groups() == 1) return;
  if (groups_.leads()) {
    std::vector<int> leaders;
    for (int rank : groups_.Leaders()) leaders.push_back(ranks[static_cast<size_t>(rank)]);
    leaders_ = std::make_unique<StreamGroup>(liveness, epoch, std::move(leaders),
                                             static_cast<int>(groups_.own()));
  }
  everyone_ = std::make_unique<StreamGroup>(liveness, epoch, std::move(ranks), groups_.self());
}

Status Hierarchy::Allreduce(const void* in, void* out, size_t count, const Reduction& how,
                            uint64_t op_number) {
  if (groups_.groups() == 1) return shm_->Allreduce(in, out, count, how, op_number);
  return AllreduceAcross(in, out, count, how, op_number);
}

// Reduces inside each group to its first rank, allreduces among the first ranks, and broadcasts the
// result inside each group.
Status Hierarchy::AllreduceAcross(const void* in, void* out, size_t count, Reduction how,
                                  uint64_t op_number) {
  int divisor = how.divisor;
  Status status;
  if (shares_memory()) {
    how.divisor = 1;
    status = shm_->Allreduce(in, out, count, how, op_number, true);
    in = out;
  }
  how.divisor = divisor;
  if (status.ok() && leads()) status = leaders_->Allreduce(in, out, count, how, op_number);
  if (status.ok() && shares_memory()) {
    status = shm_->Broadcast(out, count * element::Size(how.dtype), 0, op_number);
  }
  return status;
}

// Gathers inside each group, then all groups' blocks at the first ranks, and broadcasts everything
// inside each group.
Status Hierarchy::Allgatherv(const void* send, const Blocks& by_rank, uint64_t op_number) {
  if (groups_.groups() == 1 && shares_memory()) return shm_->Allgatherv(send, by_rank, op_number);
  Status status;
  if (shares_memory()) {
    status = shm_->Allgatherv(send, groups_.OfOwn(by_rank), op_number);
  } else {
    const std::span<std::byte>& own = by_rank[static_cast<size_t>(groups_.self())];
    if (!own.empty() && own.data() != send) std::memmove(own.data(), send, own.size());
  }
  if (status.ok() && leads()) {
    std::vector<Blocks> by_group(groups_.groups());
    for (size_t group = 0; group < by_group.size(); ++group) {
      for (int rank : groups_.Members(group))
        by_group[group].push_back(by_rank[static_cast<size_t>(rank)]);
    }
    status = leaders_->Allgatherv(by_group, op_number);
  }
  if (status.ok() && shares_memory()) {
    std::byte* begin = by_rank.front().data();
    const size_t total = static_cast<size_t>(by_rank.back().data() + by_rank.back().size() - begin);
    status = shm_->Broadcast(begin, total, 0, op_number);
  }
  return status;
}

Status Hierarchy::Broadcast(void* data, size_t bytes, int root, uint64_t op_number) {
  const uint32_t root_group = groups_.GroupOf(root);
  const bool has_root = groups_.own() == root_group;
  Status status;
  if (shares_memory() && has_root) {
    status = shm_->Broadcast(data, bytes, groups_.PlaceInOwn(root), op_number);
  }
  if (status.ok() && leads())
    status = leaders_->Broadcast(data, bytes, static_cast<int>(root_group), op_number);
  if (status.ok() && shares_memory() && !has_root)
    status = shm_->Broadcast(data, bytes, 0, op_number);
  return status;
}

Status Hierarchy::ReduceScatter(const ConstBlocks& by_rank, void* out, const Reduction& how,
                                uint64_t op_number) {
  if (groups_.groups() == 1) return shm_->ReduceScatter(by_rank, out, how, op_number);
  return ReduceScatterAcross(by_rank, out, how, op_number);
}

// First puts the blocks into the order of the groups, so that the blocks of one group are
// contiguous. They are then reduced to each group's first rank, reduce-scattered among the first
// ranks, and scattered inside each group to the ranks that they are for.
Status Hierarchy::ReduceScatterAcross(const ConstBlocks& by_rank, void* out, const Reduction& how,
                                      uint64_t op_number) {
  std::vector<std::byte> arranged;
  std::vector<size_t> begins;
  for (size_t group = 0; group < groups_.groups(); ++group) {
    begins.push_back(arranged.size());
    for (int rank : groups_.Members(group)) {
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
                             arranged.size() / element::Size(how.dtype), inside, op_number, true);
  }
  std::byte* mine = arranged.data() + begins[groups_.own()];
  if (status.ok() && leads()) {
    ConstBlocks by_group;
    for (size_t g = 0; g < groups_.groups(); ++g) {
      by_group.emplace_back(arranged.data() + begins[g], begins[g + 1] - begins[g]);
    }
    status = leaders_->ReduceScatter(by_group, shares_memory() ? mine : out, how, op_number);
  }
  if (!status.ok() || !shares_memory()) return status;
  // Only the first rank of the group sends; the others give empty blocks.
  ConstBlocks send;
  size_t longest = 0;
  for (const auto& block : groups_.OfOwn(by_rank)) {
    send.emplace_back(mine, leads() ? block.size() : 0);
    mine += block.size();
    longest = std::max(longest, block.size());
  }
  Blocks recv(groups_.own_members().size());
  recv[0] = {static_cast<std::byte*>(out), by_rank[static_cast<size_t>(groups_.self())].size()};
  return shm_->Alltoallv(send, recv, longest, op_number);
}

// Ranks of one group exchange over the arenas, ranks of different groups over their connection.
Status Hierarchy::Alltoallv(ConstBlocks to, Blocks from, std::span<const size_t> bytes,
                            uint64_t op_number) {
  const size_t self = static_cast<size_t>(groups_.self());
  Status status;
  if (shares_memory()) {
    status =
        shm_->Alltoallv(groups_.OfOwn(to), groups_.OfOwn(from), LongestInOwn(bytes), op_number);
  } else if (!to[self].empty()) {
    std::memmove(from[self].data(), to[self].data(), to[self].size());
  }
  if (!status.ok() || everyone_ == nullptr) return status;
  for (int rank : groups_.own_members()) {
    to[static_cast<size_t>(rank)] = {};
    from[static_cast<size_t>(rank)] = {};
  }
  return everyone_->Alltoallv(to, from, op_number);
}

size_t Hierarchy::LongestInOwn(std::span<const size_t> bytes) const {
  size_t longest = 0;
  for (int i : groups_.own_members()) {
    for (int k : groups_.own_members()) {
      if (i == k) continue;
      longest = std::max(longest,
                         bytes[static_cast<size_t>(i) * groups_.ranks() + static_cast<size_t>(k)]);
    }
  }
  return longest;
}

Status Hierarchy::Barrier(uint64_t op_number) {
  Status status;
  if (shares_memory()) status = shm_->Barrier(op_number);
  if (groups_.groups() == 1) return status;
  Reduction nothing{RM_UINT8, RM_SUM, 1};
  if (status.ok() && leads())
    status = leaders_->Allreduce(&nothing_, &nothing_, 0, nothing, op_number);
  if (status.ok() && shares_memory()) status = shm_->Barrier(op_number);
  return status;
}

}  // namespace ringmaster::communicator
