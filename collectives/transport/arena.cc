#include "collectives/transport/arena.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sodium.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "collectives/transport/socket.h"

namespace ringmaster::transport {
namespace {

constexpr size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

size_t RoundUp(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

uint64_t RandomId() {
  uint64_t id = 0;
  while (id == 0) randombytes_buf(&id, sizeof(id));
  return id;
}

std::byte* MapShared(int fd, size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  return base == MAP_FAILED ? nullptr : static_cast<std::byte*>(base);
}

}  // namespace

// The store of the count and the load of `waiting` must not be reordered, and neither must their
// counterparts in ViewDeath::SleepOn, which sets `waiting` and then loads the count. Otherwise this
// side could read `waiting` as 0 while the other side still reads the old count, and sleeps.
// Sequential consistency forbids it.
void Raise(Flag* flag, uint64_t tag, uint64_t count) {
  flag->word.store(tag << kFlagCountBits | count, std::memory_order_seq_cst);
  if (flag->waiting.load(std::memory_order_seq_cst) != 0) {
    flag->waiting.store(0, std::memory_order_seq_cst);
    syscall(SYS_futex, &flag->word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

ArenaMap::~ArenaMap() { munmap(base_, bytes_); }

uint64_t ArenaMap::OffsetOf(const void* data, size_t bytes) const {
  auto* begin = static_cast<const std::byte*>(data);
  if (begin < base_ + kBufferOffset || begin > base_ + bytes_) return 0;
  if (bytes > static_cast<size_t>(base_ + bytes_ - begin)) return 0;
  return static_cast<uint64_t>(begin - base_);
}

Status ArenaMap::Attach(const UniqueFd& fd, uint64_t arena_id, size_t bytes,
                        std::shared_ptr<ArenaMap>* out) {
  struct stat info = {};
  if (!fd.valid() || fstat(fd.get(), &info) != 0) {
    return Status(RM_ERR_UNAVAILABLE, "the peer sent no arena");
  }
  if (info.st_uid != geteuid()) {
    return Status(RM_ERR_UNAVAILABLE, "the peer's arena belongs to user " +
                                          std::to_string(info.st_uid) + ", not to " +
                                          std::to_string(geteuid()));
  }
  int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return Status(RM_ERR_UNAVAILABLE, "the peer's arena isn't sealed against shrinking");
  }
  if (bytes < kBufferOffset || static_cast<size_t>(info.st_size) < bytes) {
    return Status(RM_ERR_UNAVAILABLE, "the peer's arena has " + std::to_string(info.st_size) +
                                          " bytes, " + std::to_string(bytes) + " were announced");
  }
  std::byte* base = MapShared(fd.get(), bytes);
  if (base == nullptr) return ErrnoStatus("mmap of a peer's arena");
  // This only saves page faults later, so a refusal is ignored.
  madvise(base, kBufferOffset, MADV_POPULATE_READ);
  std::shared_ptr<ArenaMap> map(new ArenaMap(base, bytes, arena_id));
  if (map->header()->magic != kArenaMagic || map->header()->arena_id != arena_id) {
    return Status(RM_ERR_UNAVAILABLE, "the peer's arena has a wrong header");
  }
  *out = std::move(map);
  return Status();
}

Status Arena::Create(size_t bytes, std::shared_ptr<Arena>* out) {
  bytes = RoundUp(bytes == 0 ? kDefaultArenaBytes : std::max(bytes, kBufferOffset));
  UniqueFd fd(memfd_create("ringmaster-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return ErrnoStatus("arena of " + std::to_string(bytes) + " bytes");
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return ErrnoStatus("sealing the arena");
  std::byte* base = MapShared(fd.get(), bytes);
  if (base == nullptr)
    return ErrnoStatus("mmap of an arena of " + std::to_string(bytes) + " bytes");
  std::shared_ptr<Arena> arena(new Arena(base, bytes, RandomId(), std::move(fd)));
  Status status = arena->MakeReal(0, kBufferOffset);
  if (!status.ok()) return status;
  arena->header()->arena_id = arena->id();
  arena->header()->magic = kArenaMagic;
  *out = std::move(arena);
  return Status();
}

// Allocates the pages now, so that a lack of memory is an error here and not a signal in the middle
// of a reduction.
Status Arena::MakeReal(size_t offset, size_t bytes) {
  int rc;
  do {
    rc = fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (rc != 0 && errno == EINTR);
  if (rc != 0) return ErrnoStatus("shared memory of " + std::to_string(bytes) + " bytes");
  madvise(base_ + offset, bytes, MADV_POPULATE_WRITE);
  return Status();
}

std::span<std::byte> Arena::Buffer(size_t bytes) {
  size_t wanted = RoundUp(bytes);
  if (bytes == 0 || wanted < bytes || wanted > bytes_ - kBufferOffset) return {};
  if (wanted > real_bytes_) {
    if (!MakeReal(kBufferOffset + real_bytes_, wanted - real_bytes_).ok()) return {};
    real_bytes_ = wanted;
  }
  return {base_ + kBufferOffset, bytes};
}

}  // namespace ringmaster::transport
