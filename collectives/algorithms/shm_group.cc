#include "collectives/algorithms/shm_group.h"

#include <algorithm>
#include <cstring>

#include "collectives/algorithms/reduce.h"
#include "collectives/element/element.h"
#include "collectives/transport/fault_point.h"

namespace ringmaster::algorithms {

using transport::ArenaChannel;
using transport::ArenaMap;
using transport::ControlBlock;
using transport::FaultPoint;
using transport::kSmallSlotBytes;

namespace {

constexpr size_t kLine = 64;
// A reduced block is copied to the others while it is in the first-level cache.
constexpr size_t kCopyBlock = 16 << 10;
// Of more than two ranks.
constexpr size_t kLongestChunkOfMany = 256 << 10;

// In one shot every rank reads the data of all others: the more ranks there are, the smaller are
// the messages for which slices pay.
size_t SmallBytes(size_t ranks) {
  return std::max<size_t>(2048, kSmallSlotBytes / std::max<size_t>(1, ranks / 2));
}

size_t ChunkBytes(const ShmPeers& peers) {
  const size_t slot = peers.own().stage_slot_bytes();
  return peers.count() <= 2 ? slot : std::min(slot, kLongestChunkOfMany);
}

struct Slice {
  size_t begin, count;  // elements
};

// The part of `count` elements that rank `k` of `n` reduces. Its borders lie on cache lines.
Slice SliceOf(size_t count, size_t element_bytes, int k, size_t n) {
  size_t align = kLine / element_bytes;
  size_t each = ((count + n - 1) / n + align - 1) / align * align;
  size_t begin = std::min(count, each * static_cast<size_t>(k));
  return {begin, std::min(each, count - begin)};
}

}  // namespace

struct ShmGroup::Staged {
  const std::byte* in;
  std::byte* out;
  size_t count;
  size_t element_bytes;
  size_t chunk_count;  // elements of a full chunk
  Reduction how;
  uint64_t first;  // number of its chunk 0
  bool copy_out;   // this rank needs the others' slices

  size_t chunks() const { return (count + chunk_count - 1) / chunk_count; }
  size_t ElementsOf(size_t index) const {
    return std::min(chunk_count, count - index * chunk_count);
  }
  size_t OffsetOf(size_t index) const { return index * chunk_count * element_bytes; }
};

ShmGroup::ShmGroup(transport::LivenessMonitor* liveness, uint64_t epoch,
                   std::vector<transport::ArenaChannel> channels, int self)
    : peers_(liveness, epoch, std::move(channels), self),
      small_bytes_(SmallBytes(peers_.count())),
      chunk_bytes_(ChunkBytes(peers_)),
      sources_(peers_.count()) {}

Status ShmGroup::Allreduce(const void* in, void* out, size_t count, const Reduction& how,
                           uint64_t op_number, bool only_first) {
  peers_.Begin(op_number);
  size_t bytes = count * element::Size(how.dtype);
  if (bytes <= small_bytes_) return OneShot(in, out, count, how);
  bool in_place = false;
  if (!only_first) {
    Status status = Offer(in, out, bytes, &in_place);
    if (!status.ok()) return status;
  }
  return in_place ? ReduceInPlace(count, how) : StagedAllreduce(in, out, count, how, only_first);
}

// Operation k writes to the slot that k-2 has used. A rank publishes k-1 only when it has returned
// from k-2, so with all ranks' k-1 published nobody reads that slot any more: two slots by parity
// replace a second hand-shake at the end of each operation.
Status ShmGroup::OneShot(const void* in, void* out, size_t count, const Reduction& how) {
  uint64_t k = ++small_;
  Status status = peers_.WaitAll(&ControlBlock::small, k - 1);
  if (!status.ok()) return status;
  std::memcpy(peers_.own().small_slot(k), in, count * element::Size(how.dtype));
  FaultPoint("shm_before_publish");
  peers_.Raise(&ControlBlock::small, k);
  FaultPoint("shm_after_publish");
  status = peers_.WaitAll(&ControlBlock::small, k);
  if (!status.ok()) return status;
  for (size_t i = 0; i < peers_.count(); ++i) sources_[i] = peers_[i].small_slot(k);
  Reduce(out, sources_, count, how.dtype, how.op, how.divisor);
  FaultPoint("shm_before_return");
  return Status();
}

// ---- large: staged in chunks ----

Status ShmGroup::StagedAllreduce(const void* in, void* out, size_t count, const Reduction& how,
                                 bool only_first) {
  size_t element_bytes = element::Size(how.dtype);
  Staged job{static_cast<const std::byte*>(in),
             static_cast<std::byte*>(out),
             count,
             element_bytes,
             chunk_bytes_ / element_bytes,
             how,
             chunk_,
             !only_first || peers_.self() == 0};
  // The next chunk is staged before this one is waited for. With three slots that needs no
  // additional wait.
  Status status = Stage(job, 0);
  for (size_t i = 0; status.ok() && i < job.chunks(); ++i) {
    if (i + 1 < job.chunks()) status = Stage(job, i + 1);
    if (status.ok()) status = ReduceSlice(job, i);
    if (status.ok()) status = CopySlices(job, i);
  }
  chunk_ += job.chunks();
  if (status.ok()) FaultPoint("shm_before_return");
  return status;
}

Status ShmGroup::Stage(const Staged& job, size_t index) {
  uint64_t chunk = job.first + index;
  Status status = peers_.WaitForStageSlot(chunk);
  if (!status.ok()) return status;
  // The own slice isn't staged: this rank reads it from the input.
  size_t elements = job.ElementsOf(index);
  Slice own = SliceOf(elements, job.element_bytes, peers_.self(), peers_.count());
  std::byte* slot = peers_.own().stage_slot(chunk);
  const std::byte* input = job.in + job.OffsetOf(index);
  size_t begin = own.begin * job.element_bytes;
  size_t end = begin + own.count * job.element_bytes;
  std::memcpy(slot, input, begin);
  std::memcpy(slot + end, input + end, elements * job.element_bytes - end);
  RaiseStaged(chunk);
  return Status();
}

void ShmGroup::RaiseStaged(uint64_t chunk) {
  FaultPoint("shm_before_stage");
  peers_.Raise(&ControlBlock::staged, chunk + 1);
  FaultPoint("shm_after_stage");
}

Status ShmGroup::ReduceSlice(const Staged& job, size_t index) {
  uint64_t chunk = job.first + index;
  Status status = peers_.WaitAll(&ControlBlock::staged, chunk + 1);
  if (!status.ok()) return status;
  Slice own = SliceOf(job.ElementsOf(index), job.element_bytes, peers_.self(), peers_.count());
  size_t begin = own.begin * job.element_bytes;
  for (size_t k = 0; k < peers_.count(); ++k) sources_[k] = peers_[k].stage_slot(chunk) + begin;
  sources_[static_cast<size_t>(peers_.self())] = job.in + job.OffsetOf(index) + begin;
  std::byte* out = job.out + job.OffsetOf(index) + begin;
  Reduce(out, sources_, own.count, job.how.dtype, job.how.op, job.how.divisor);
  std::memcpy(peers_.own().stage_slot(chunk) + begin, out, own.count * job.element_bytes);
  FaultPoint("shm_before_reduced");
  peers_.Raise(&ControlBlock::reduced, chunk + 1);
  FaultPoint("shm_after_reduced");
  return Status();
}

Status ShmGroup::CopySlices(const Staged& job, size_t index) {
  uint64_t chunk = job.first + index;
  std::byte* out = job.out + job.OffsetOf(index);
  for (int i = 1; job.copy_out && i < size(); ++i) {
    int k = (peers_.self() + i) % size();
    Status status = peers_.Wait(k, &ControlBlock::reduced, chunk + 1);
    if (!status.ok()) return status;
    Slice slice = SliceOf(job.ElementsOf(index), job.element_bytes, k, peers_.count());
    size_t begin = slice.begin * job.element_bytes;
    std::memcpy(out + begin, peers_[k].stage_slot(chunk) + begin, slice.count * job.element_bytes);
  }
  peers_.Raise(&ControlBlock::consumed, chunk + 1);
  return Status();
}

// ---- large: where the buffers are ----

Status ShmGroup::Offer(const void* in, void* out, size_t bytes, bool* all) {
  uint64_t k = ++offers_;
  const ArenaMap& map = peers_.own().arena();
  // Entry k is overwritten in operation k+2. This rank begins k+2 only when it has returned from
  // k+1, which needs all ranks to have begun k+1, so to have returned from k: nobody reads entry k
  // any more. (A rank that doesn't wait for the offers below still waits for all ranks in the
  // reduction itself.)
  transport::Offered& offer = peers_.own().control()->offers[k % 2];
  offer.in = map.OffsetOf(in, bytes);
  offer.out = map.OffsetOf(out, bytes);
  places_.resize(peers_.count());
  places_[static_cast<size_t>(peers_.self())] = offer;
  *all = offer.in != 0 && offer.out != 0;
  peers_.Raise(&ControlBlock::offered, k);
  // A rank that has nothing to offer knows the answer without looking; every rank that reads its
  // offer comes to the same answer.
  for (int i = 1; *all && i < size(); ++i) {
    int member = (peers_.self() + i) % size();
    Status status = peers_.Wait(member, &ControlBlock::offered, k);
    if (!status.ok()) return status;
    const ArenaMap& peer = peers_[member].arena();
    // The offer is copied before it is checked: what lies in shared memory may change at any time.
    const volatile transport::Offered& lying = peers_[member].control()->offers[k % 2];
    const transport::Offered theirs{lying.in, lying.out};
    auto fits = [&](uint64_t offset) {
      return offset >= transport::kBufferOffset && offset <= peer.bytes() &&
             bytes <= peer.bytes() - offset;
    };
    *all = fits(theirs.in) && fits(theirs.out);
    places_[static_cast<size_t>(member)] = theirs;
  }
  return Status();
}

Status ShmGroup::ReduceInPlace(size_t count, const Reduction& how) {
  size_t element_bytes = element::Size(how.dtype);
  Slice own_slice = SliceOf(count, element_bytes, peers_.self(), peers_.count());
  size_t block = kCopyBlock / element_bytes;
  FaultPoint("arena_before_reduce");
  for (size_t at = 0; at < own_slice.count; at += block) {
    size_t elements = std::min(block, own_slice.count - at);
    size_t offset = (own_slice.begin + at) * element_bytes;
    for (size_t k = 0; k < peers_.count(); ++k) {
      sources_[k] = peers_[k].arena().base() + places_[k].in + offset;
    }
    std::byte* result =
        peers_.own().arena().base() + places_[static_cast<size_t>(peers_.self())].out + offset;
    Reduce(result, sources_, elements, how.dtype, how.op, how.divisor);
    for (int i = 1; i < size(); ++i) {
      const size_t member = static_cast<size_t>((peers_.self() + i) % size());
      std::memcpy(peers_[member].arena().base() + places_[member].out + offset, result,
                  elements * element_bytes);
    }
  }
  // This takes one number of the chunk counter, for the flag `reduced`. `consumed` is raised as
  // well, because a later operation that stages waits until all ranks have consumed the earlier
  // chunks, this one included, and would wait for ever.
  uint64_t chunk = chunk_++;
  FaultPoint("shm_before_reduced");
  peers_.Raise(&ControlBlock::reduced, chunk + 1);
  peers_.Raise(&ControlBlock::consumed, chunk + 1);
  FaultPoint("shm_after_reduced");
  Status status = peers_.WaitAll(&ControlBlock::reduced, chunk + 1);
  if (status.ok()) FaultPoint("shm_before_return");
  return status;
}

// ---- broadcast and allgather ----

Status ShmGroup::Broadcast(void* data, size_t bytes, int root, uint64_t op_number) {
  peers_.Begin(op_number);
  const ArenaChannel& source = peers_[root];
  if (bytes <= kSmallSlotBytes) {
    uint64_t k = ++small_;
    Status status = peers_.WaitAll(&ControlBlock::small, k - 1);
    if (!status.ok()) return status;
    if (peers_.self() == root) std::memcpy(source.small_slot(k), data, bytes);
    FaultPoint("shm_before_publish");
    peers_.Raise(&ControlBlock::small, k);
    FaultPoint("shm_after_publish");
    if (peers_.self() != root) status = peers_.Wait(root, &ControlBlock::small, k);
    if (status.ok() && peers_.self() != root) std::memcpy(data, source.small_slot(k), bytes);
    return status;
  }
  uint64_t first = chunk_;
  size_t chunks = (bytes + chunk_bytes_ - 1) / chunk_bytes_;
  chunk_ += chunks;
  for (size_t i = 0; i < chunks; ++i) {
    uint64_t chunk = first + i;
    auto* at = static_cast<std::byte*>(data) + i * chunk_bytes_;
    size_t part = std::min(chunk_bytes_, bytes - i * chunk_bytes_);
    Status status = peers_.self() == root ? peers_.WaitForStageSlot(chunk)
                                          : peers_.Wait(root, &ControlBlock::staged, chunk + 1);
    if (!status.ok()) return status;
    if (peers_.self() == root) {
      std::memcpy(source.stage_slot(chunk), at, part);
      RaiseStaged(chunk);
    } else {
      std::memcpy(at, source.stage_slot(chunk), part);
    }
    peers_.Raise(&ControlBlock::consumed, chunk + 1);
  }
  return Status();
}

Status ShmGroup::Allgatherv(const void* send, std::span<const std::span<std::byte>> blocks,
                            uint64_t op_number) {
  peers_.Begin(op_number);
  size_t longest = 0;
  for (const auto& block : blocks) longest = std::max(longest, block.size());
  const std::span<std::byte>& mine = blocks[static_cast<size_t>(peers_.self())];
  auto* source = static_cast<const std::byte*>(send);
  if (!mine.empty() && mine.data() != source) std::memmove(mine.data(), source, mine.size());
  source = mine.data();
  uint64_t first = chunk_;
  size_t chunks = (longest + chunk_bytes_ - 1) / chunk_bytes_;
  chunk_ += chunks;
  auto part_of = [&](const std::span<std::byte>& block, size_t i) {
    size_t begin = std::min(block.size(), i * chunk_bytes_);
    return block.subspan(begin, std::min(chunk_bytes_, block.size() - begin));
  };
  for (size_t i = 0; i < chunks; ++i) {
    uint64_t chunk = first + i;
    Status status = peers_.WaitForStageSlot(chunk);
    if (!status.ok()) return status;
    std::span<std::byte> part = part_of(mine, i);
    if (!part.empty()) std::memcpy(peers_.own().stage_slot(chunk), part.data(), part.size());
    RaiseStaged(chunk);
    for (int step = 1; step < size(); ++step) {
      int k = (peers_.self() + step) % size();
      part = part_of(blocks[static_cast<size_t>(k)], i);
      status = peers_.Wait(k, &ControlBlock::staged, chunk + 1);
      if (!status.ok()) return status;
      if (!part.empty()) std::memcpy(part.data(), peers_[k].stage_slot(chunk), part.size());
    }
    peers_.Raise(&ControlBlock::consumed, chunk + 1);
  }
  return Status();
}

// ---- a block for each rank ----

namespace {

// The part of a block that chunk `index` carries.
template <typename Bytes>
std::span<Bytes> PartOf(std::span<Bytes> block, size_t index, size_t part_bytes) {
  const size_t begin = std::min(block.size(), index * part_bytes);
  return block.subspan(begin, std::min(part_bytes, block.size() - begin));
}

}  // namespace

size_t ShmGroup::PartBytes() const {
  return std::max(kLine, chunk_bytes_ / peers_.count() / kLine * kLine);
}

Status ShmGroup::StageParts(std::span<const std::span<const std::byte>> blocks, size_t index,
                            uint64_t chunk) {
  if (Status s = peers_.WaitForStageSlot(chunk); !s.ok()) return s;
  const size_t part_bytes = PartBytes();
  const size_t own = static_cast<size_t>(peers_.self());
  std::byte* slot = peers_.own().stage_slot(chunk);
  for (size_t k = 0; k < blocks.size(); ++k) {
    const auto part = PartOf(blocks[k], index, part_bytes);
    if (k != own && !part.empty()) std::memcpy(slot + k * part_bytes, part.data(), part.size());
  }
  RaiseStaged(chunk);
  return Status();
}

Status ShmGroup::ReduceScatter(std::span<const std::span<const std::byte>> blocks, void* out,
                               const Reduction& how, uint64_t op_number) {
  peers_.Begin(op_number);
  const size_t part_bytes = PartBytes();
  const size_t own = static_cast<size_t>(peers_.self());
  size_t longest = 0;
  for (const auto& block : blocks) longest = std::max(longest, block.size());
  const uint64_t first = chunk_;
  const size_t chunks = (longest + part_bytes - 1) / part_bytes;
  chunk_ += chunks;
  for (size_t i = 0; i < chunks; ++i) {
    const uint64_t chunk = first + i;
    Status status = StageParts(blocks, i, chunk);
    if (!status.ok()) return status;
    status = peers_.WaitAll(&ControlBlock::staged, chunk + 1);
    if (!status.ok()) return status;
    for (size_t k = 0; k < peers_.count(); ++k) {
      sources_[k] = peers_[k].stage_slot(chunk) + own * part_bytes;
    }
    const auto mine = PartOf(blocks[own], i, part_bytes);
    sources_[own] = mine.data();
    Reduce(static_cast<std::byte*>(out) + i * part_bytes, sources_,
           mine.size() / element::Size(how.dtype), how.dtype, how.op, how.divisor);
    peers_.Raise(&ControlBlock::consumed, chunk + 1);
  }
  FaultPoint("shm_before_return");
  return Status();
}

Status ShmGroup::Alltoallv(std::span<const std::span<const std::byte>> send,
                           std::span<const std::span<std::byte>> recv, size_t longest,
                           uint64_t op_number) {
  peers_.Begin(op_number);
  const size_t part_bytes = PartBytes();
  const size_t own = static_cast<size_t>(peers_.self());
  if (!send[own].empty()) std::memmove(recv[own].data(), send[own].data(), send[own].size());
  const uint64_t first = chunk_;
  const size_t chunks = (longest + part_bytes - 1) / part_bytes;
  chunk_ += chunks;
  for (size_t i = 0; i < chunks; ++i) {
    const uint64_t chunk = first + i;
    Status status = StageParts(send, i, chunk);
    if (!status.ok()) return status;
    for (int step = 1; step < size(); ++step) {
      const int k = (peers_.self() + step) % size();
      const auto part = PartOf(recv[static_cast<size_t>(k)], i, part_bytes);
      status = peers_.Wait(k, &ControlBlock::staged, chunk + 1);
      if (!status.ok()) return status;
      if (part.empty()) continue;
      const std::byte* theirs = peers_[k].stage_slot(chunk);
      std::memcpy(part.data(), theirs + own * part_bytes, part.size());
    }
    peers_.Raise(&ControlBlock::consumed, chunk + 1);
  }
  FaultPoint("shm_before_return");
  return Status();
}

Status ShmGroup::Barrier(uint64_t op_number) {
  peers_.Begin(op_number);
  uint64_t k = ++small_;
  peers_.Raise(&ControlBlock::small, k);
  FaultPoint("shm_after_publish");
  return peers_.WaitAll(&ControlBlock::small, k);
}

}  // namespace ringmaster::algorithms
