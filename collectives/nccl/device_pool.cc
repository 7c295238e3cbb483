#include "collectives/nccl/device_pool.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/nccl/on_device.h"

namespace ringmaster::nccl {
namespace {

constexpr size_t kGrain = 512;
constexpr size_t kMostWaste = size_t{1} << 20;

}  // namespace

DevicePool::~DevicePool() {
  {
    sync::MutexLock lock(&kept_->mu);
    kept_->closed = true;
  }
  kept_->FreeAll();
}

void DevicePool::Use(int device) {
  std::vector<std::byte*> unused;
  int before = 0;
  {
    sync::MutexLock lock(&kept_->mu);
    before = std::exchange(kept_->in_use, device);
    if (before != device) unused = kept_->TakeAll();
  }
  kept_->Free(before, unused);
}

std::shared_ptr<engine::Buffer> DevicePool::Get(size_t bytes) {
  size_t capacity = (std::max<size_t>(bytes, 1) + kGrain - 1) / kGrain * kGrain;
  std::byte* data = kept_->Take(&capacity);
  for (int attempt = 0; data == nullptr && attempt < 2; ++attempt) {
    void* made = nullptr;
    if (kept_->cuda->Malloc(&made, capacity) == kCudaSuccess) data = static_cast<std::byte*>(made);
    if (data == nullptr) kept_->FreeAll();
  }
  if (data == nullptr) return nullptr;
  sync::MutexLock lock(&kept_->mu);
  return engine::Buffer::Adopt(data, capacity,
                               [kept = kept_, device = kept_->in_use](std::byte* at, size_t size) {
                                 kept->Release(at, size, device);
                               });
}

std::byte* DevicePool::Kept::Take(size_t* capacity) {
  sync::MutexLock lock(&mu);
  const auto found = free.lower_bound(*capacity);
  if (found == free.end() || found->first > 2 * *capacity + kMostWaste) return nullptr;
  *capacity = found->first;
  std::byte* data = found->second;
  free.erase(found);
  return data;
}

// A buffer of a device that is not in use any more is freed at once: the guess that it was the
// right one was wrong, so nothing runs there.
void DevicePool::Kept::Release(std::byte* data, size_t capacity, int device) {
  {
    sync::MutexLock lock(&mu);
    if (abandoned) return;
    if (!closed && device == in_use) {
      free.emplace(capacity, data);
      return;
    }
  }
  Free(device, {data});
}

void DevicePool::Kept::Free(int device, const std::vector<std::byte*>& blocks) {
  if (blocks.empty()) return;
  RunOnDevice(cuda.get(), device, [&] {
    for (std::byte* data : blocks) (void)cuda->Free(data);
  });
}

void DevicePool::Kept::Abandon() {
  sync::MutexLock lock(&mu);
  abandoned = true;
  free.clear();
}

std::vector<std::byte*> DevicePool::Kept::TakeAll() {
  std::vector<std::byte*> all;
  for (const auto& [capacity, data] : free) all.push_back(data);
  free.clear();
  return all;
}

void DevicePool::Kept::FreeAll() {
  std::vector<std::byte*> all;
  int device = 0;
  {
    sync::MutexLock lock(&mu);
    all = TakeAll();
    device = in_use;
  }
  Free(device, all);
}

}  // namespace ringmaster::nccl
