#include "collectives/nccl/device_pool.h"

#include <algorithm>
#include <utility>
#include <vector>

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

std::shared_ptr<engine::Buffer> DevicePool::Get(size_t bytes) {
  size_t capacity = (std::max<size_t>(bytes, 1) + kGrain - 1) / kGrain * kGrain;
  std::byte* data = kept_->Take(&capacity);
  for (int attempt = 0; data == nullptr && attempt < 2; ++attempt) {
    void* made = nullptr;
    if (kept_->cuda->Malloc(&made, capacity) == kCudaSuccess) data = static_cast<std::byte*>(made);
    if (data == nullptr) kept_->FreeAll();
  }
  if (data == nullptr) return nullptr;
  return engine::Buffer::Adopt(
      data, capacity, [kept = kept_](std::byte* at, size_t size) { kept->Release(at, size); });
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

void DevicePool::Kept::Release(std::byte* data, size_t capacity) {
  {
    sync::MutexLock lock(&mu);
    if (abandoned) return;
    if (!closed) {
      free.emplace(capacity, data);
      return;
    }
  }
  (void)cuda->Free(data);
}

void DevicePool::Kept::Abandon() {
  sync::MutexLock lock(&mu);
  abandoned = true;
  free.clear();
}

void DevicePool::Kept::FreeAll() {
  std::multimap<size_t, std::byte*> all;
  {
    sync::MutexLock lock(&mu);
    all.swap(free);
  }
  for (const auto& [capacity, data] : all) (void)cuda->Free(data);
}

}  // namespace ringmaster::nccl
