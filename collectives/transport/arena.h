// The memory that a process shares with the ranks that can map it: channels, and a buffer for
// callers. It is a sealed memfd, so it has no name anywhere and is gone with its last mapping.
//
// A channel is what one communicator of the view needs: flags, slots for small messages and slots
// for staged chunks. The first belongs to the communicator of all ranks, the others are lent to
// those of some ranks.
//
// Layout: ArenaHeader and the channels' ControlBlocks (one page) | the channels' slots, of each
// kSmallSlots small ones and then kStageSlots stage slots | caller's buffer. Thread rule: the
// owner's flags are written by the thread that runs the owner's collective, and by no other thread
// or process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "collectives/transport/unique_fd.h"
#include "ringmaster/communicator.h"
#include "ringmaster/endpoint.h"
#include "ringmaster/status.h"

namespace ringmaster::transport {

inline constexpr int kChannels = 1 + kSubsetChannels;
inline constexpr size_t kSmallSlotBytes = 16 << 10;
inline constexpr size_t kSmallSlots = 2;
inline constexpr size_t kStageSlotBytes = 512 << 10;  // of the first channel
// Of the others: smaller, because every worker has them, and few jobs have process sets.
inline constexpr size_t kSubsetStageSlotBytes = 128 << 10;
inline constexpr size_t kStageSlots = 3;
inline constexpr size_t kControlBytes = 4096;

constexpr size_t StageSlotBytes(int channel) {
  return channel == 0 ? kStageSlotBytes : kSubsetStageSlotBytes;
}
// Where the slots of a channel begin; of kChannels: where the last one's end.
constexpr size_t SlotsOffset(int channel) {
  size_t offset = kControlBytes;
  for (int i = 0; i < channel; ++i)
    offset += kSmallSlots * kSmallSlotBytes + kStageSlots * StageSlotBytes(i);
  return offset;
}

inline constexpr size_t kBufferOffset = SlotsOffset(kChannels);
inline constexpr size_t kDefaultArenaBytes = kBufferOffset + (size_t{256} << 20);

// A counter that other ranks wait for. It only rises within a view, so a rank that looks late still
// sees that its number was reached. Its upper bits are the view's tag: the arena outlives views,
// and because of the tag what its owner wrote in another view counts as nothing, without anybody
// clearing it.
struct alignas(64) Flag {
  std::atomic<uint64_t> word;     // tag << 40 | count
  std::atomic<uint32_t> waiting;  // a rank sleeps on the lower half of `word`
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(Flag) == 64);

inline constexpr int kFlagCountBits = 40;
inline constexpr uint64_t kFlagCountMask = (uint64_t{1} << kFlagCountBits) - 1;

// 24 bits that differ between any two views that can be alive at once: the low bits of the view's
// number and of its lineage. One bit is flipped so that the first views' tags aren't the zero of
// fresh memory.
inline uint64_t EpochTag(uint64_t epoch) {
  return ((epoch & 0xffff) | ((epoch >> 40 & 0xff) << 16)) ^ 0x800000;
}

inline bool Reached(const Flag& flag, uint64_t tag, uint64_t count) {
  uint64_t word = flag.word.load(std::memory_order_acquire);
  return word >> kFlagCountBits == tag && (word & kFlagCountMask) >= count;
}

// Stores the count and wakes the ranks that sleep on it. Only the flag's owner may call it.
void Raise(Flag* flag, uint64_t tag, uint64_t count);

// The offsets of a rank's buffers for a reduction in place within its arena; 0: the buffer lies
// elsewhere.
struct Offered {
  uint64_t in;
  uint64_t out;
};

// Of one channel.
struct ControlBlock {
  alignas(64) Flag small;     // small messages published
  alignas(64) Flag staged;    // chunks staged
  alignas(64) Flag reduced;   // chunks of which this rank has reduced its slice
  alignas(64) Flag consumed;  // chunks that this rank has finished reading, in all arenas
  alignas(64) Flag offered;   // operations for which this rank has written its offer
  Offered offers[2];          // by the operation's parity: see ShmGroup::Offer
};

struct ArenaHeader {
  uint64_t magic;
  uint64_t arena_id;
  ControlBlock channels[kChannels];
};
static_assert(sizeof(ArenaHeader) <= kControlBytes);

// The last digit counts the layouts: arenas of another layout are not mapped.
inline constexpr uint64_t kArenaMagic = 0x326e657261474d52;  // "RMGaren2"

// An arena as it lies in this process's address space: the own one or a peer's.
class ArenaMap {
 public:
  // Maps a peer's arena. Its size and seal are checked, so that no access can fault later.
  // RM_ERR_UNAVAILABLE if it can't be mapped or isn't what the peer has announced.
  static Status Attach(const UniqueFd& fd, uint64_t arena_id, size_t bytes,
                       std::shared_ptr<ArenaMap>* out);
  ~ArenaMap();
  ArenaMap(const ArenaMap&) = delete;
  ArenaMap& operator=(const ArenaMap&) = delete;

  ArenaHeader* header() const { return reinterpret_cast<ArenaHeader*>(base_); }
  std::byte* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  uint64_t id() const { return id_; }

  // The offset of the range in the arena if it lies in the caller's buffer, else 0.
  uint64_t OffsetOf(const void* data, size_t bytes) const;

 protected:
  ArenaMap(std::byte* base, size_t bytes, uint64_t id) : base_(base), bytes_(bytes), id_(id) {}

  std::byte* base_;
  size_t bytes_;
  uint64_t id_;
};

// A channel of an arena. Copies mean the same channel.
class ArenaChannel {
 public:
  // `number`: 0 to kChannels - 1.
  ArenaChannel(std::shared_ptr<ArenaMap> arena, int number)
      : control_(&arena->header()->channels[number]),
        small_(arena->base() + SlotsOffset(number)),
        stage_(small_ + kSmallSlots * kSmallSlotBytes),
        stage_slot_bytes_(StageSlotBytes(number)),
        arena_(std::move(arena)) {}

  const ArenaMap& arena() const { return *arena_; }
  ControlBlock* control() const { return control_; }
  std::byte* small_slot(uint64_t n) const { return small_ + n % kSmallSlots * kSmallSlotBytes; }
  std::byte* stage_slot(uint64_t n) const { return stage_ + n % kStageSlots * stage_slot_bytes_; }
  size_t stage_slot_bytes() const { return stage_slot_bytes_; }

 private:
  ControlBlock* control_;
  std::byte* small_;
  std::byte* stage_;
  size_t stage_slot_bytes_;
  std::shared_ptr<ArenaMap> arena_;
};

class Arena : public ArenaMap {
 public:
  static Status Create(size_t bytes, std::shared_ptr<Arena>* out);

  int fd() const { return fd_.get(); }
  // The first `bytes` of the caller's buffer, with its pages allocated. Empty if the arena is
  // smaller or the machine has no memory.
  std::span<std::byte> Buffer(size_t bytes);
  // Whether a buffer was given out.
  bool lent() const { return real_bytes_ > 0; }
  // No new peer maps it any more, and no more of the buffer is given out; what was stays.
  void CloseFile() { fd_.Reset(); }

 private:
  Arena(std::byte* base, size_t bytes, uint64_t id, UniqueFd fd)
      : ArenaMap(base, bytes, id), fd_(std::move(fd)) {}
  Status MakeReal(size_t offset, size_t bytes);

  UniqueFd fd_;
  size_t real_bytes_ = 0;  // allocated so far, from the start of the caller's buffer
};

}  // namespace ringmaster::transport
