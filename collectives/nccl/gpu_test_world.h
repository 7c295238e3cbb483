// Workers of a TestWorld whose tensors lie on fake GPUs. NCCL's launches and connects count as
// calls of the view, like those of the host's communicator, so a fault can be at any of them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/test_world.h"
#include "collectives/nccl/backend_by_memory.h"
#include "collectives/nccl/fake/fake_gpu.h"

namespace ringmaster::nccl {

constexpr int kNoShrink = 22005, kShrinkOnly = 22703, kAllThereIs = 23203;

class GpuTestWorld {
 public:
  struct Options {
    int version = kAllThereIs;
    std::set<int> without_nccl = {};  // ids
    std::set<int> without_cuda = {};
    WaitLimits limits = {};
    bool shm = true;
    bool needs_nccl = false;
    bool own_devices = false;  // worker n uses device n; else all use 0
  };

  explicit GpuTestWorld(int workers) : GpuTestWorld(workers, Options()) {}
  GpuTestWorld(int workers, Options options)
      : options_(std::move(options)),
        world(workers, options_.shm, {},
              [this](engine::TestWorker* worker) { return MakeBackend(worker); }) {}
  ~GpuTestWorld() {
    for (auto& worker : world.workers) worker->engine->PostEnd({RM_ERR_SHUTDOWN, "the test ends"});
    for (auto& worker : world.workers) worker->engine->Close();
    world.workers.clear();
    for (const auto& [id, process] : processes_) {
      for (int used : process->used_devices()) EXPECT_EQ(used, device(id)) << "worker " << id;
    }
    EXPECT_TRUE(cluster.misuse().empty()) << testing::PrintToString(cluster.misuse());
  }

  FakeProcess& process(int id) { return *processes_.at(id); }
  int device(int id) const { return options_.own_devices ? id : 0; }

  // `values` in the memory of worker `id`'s GPU, until the world ends.
  template <typename T>
  T* OnDevice(int id, const std::vector<T>& values) {
    void* data = nullptr;
    (void)process(id).gpu().cuda->SetDevice(device(id));
    (void)process(id).gpu().cuda->Malloc(&data, values.size() * sizeof(T) + 1);
    if (!values.empty()) std::memcpy(data, values.data(), values.size() * sizeof(T));
    return static_cast<T*>(data);
  }

 private:
  std::unique_ptr<engine::Backend> MakeBackend(engine::TestWorker* worker) {
    const int id = worker->id;
    auto process = std::make_unique<FakeProcess>(&cluster, options_.version, device(id) + 1);
    process->next_fate = [worker] { return NextFate(worker); };
    process->comes_to_connect = [worker] { return NextFate(worker) == Fate::kRun; };
    gpus_[id] = process->gpu(!options_.without_nccl.contains(id));
    if (options_.without_cuda.contains(id)) gpus_[id] = {.no_cuda = "there is no GPU"};
    processes_[id] = std::move(process);
    return std::make_unique<BackendByMemory>([this, id] { return gpus_.at(id); }, device(id),
                                             options_.limits, options_.needs_nccl);
  }

  static Fate NextFate(engine::TestWorker* worker) {
    const int call = worker->calls++;
    const engine::Fault& fault = worker->call_fault;
    if (fault.call >= 0 && call > fault.call) return Fate::kAbsent;
    std::lock_guard lock(worker->world->mu);
    int& most = worker->world->most_calls[worker->call_epoch];
    most = std::max(most, worker->calls);
    if (call != fault.call) return Fate::kRun;
    worker->world->past_fault[worker->call_epoch].insert(worker->id);
    worker->world->changed.notify_all();
    return fault.completes.contains(worker->id) ? Fate::kRun : Fate::kHang;
  }

  const Options options_;
  std::map<int, Gpu> gpus_;

 public:
  FakeCluster cluster;

 private:
  std::map<int, std::unique_ptr<FakeProcess>> processes_;

 public:
  engine::TestWorld world;  // last: its engines end before their GPUs go
};

}  // namespace ringmaster::nccl
