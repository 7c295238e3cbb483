// Allreduces of one element among workers with tensors on fake GPUs, and what the sidecars do when
// a view breaks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/engine/test_requests.h"
#include "collectives/nccl/gpu_test_world.h"

namespace ringmaster::nccl {

inline std::shared_ptr<engine::Operation> AskSum(engine::TestWorker& w, float* data, int set = 0,
                                                 int device = 0, const void* ready = nullptr) {
  using engine::Operation;
  engine::Request request{"x", engine::Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
  request.process_set = set;
  request.on_gpu = true;
  auto operation =
      std::make_shared<Operation>(std::move(request), data, data, 0, Operation::Splits(),
                                  Operation::OnDevice{.device = device, .ready_event = ready});
  if (Status s = w.engine->Submit(operation); !s.ok()) operation->Complete(s);
  return operation;
}

// Each worker gives 1.
inline void SumIs(GpuTestWorld* gpus, const std::vector<int>& ids, float expected) {
  engine::OnEach(&gpus->world, ids, [&](engine::TestWorker& w) {
    auto* data = gpus->OnDevice<float>(w.id, {1});
    const auto operation = AskSum(w, data, 0, gpus->device(w.id));
    const Status status = engine::Await(operation);
    EXPECT_TRUE(status.ok()) << "worker " << w.id << ": " << status.message();
    EXPECT_EQ(data[0], expected) << "worker " << w.id;
  });
}

// Does what the sidecars do as long as a view breaks: gives the same workers another one.
class Repairs {
 public:
  Repairs(GpuTestWorld* gpus, std::vector<int> ids, uint64_t epoch)
      : world_(gpus->world), thread_([this, ids = std::move(ids), epoch]() mutable {
          while (AwaitBroken(ids, epoch)) {
            world_.Stop(ids);
            epoch = world_.Install(ids, "LinkBroken");
          }
        }) {}
  ~Repairs() {
    {
      std::lock_guard lock(world_.mu);
      over_ = true;
      world_.changed.notify_all();
    }
    thread_.join();
  }

 private:
  // False: there is nothing more to repair.
  bool AwaitBroken(const std::vector<int>& ids, uint64_t epoch) {
    bool broken = false;
    std::unique_lock lock(world_.mu);
    world_.changed.wait(lock, [&] {
      broken = std::any_of(ids.begin(), ids.end(),
                           [&](int id) { return world_.workers[id]->broken.contains(epoch); });
      return broken || over_;
    });
    return broken && !over_;
  }

  engine::TestWorld& world_;
  bool over_ = false;  // guarded by world_.mu
  std::thread thread_;
};

}  // namespace ringmaster::nccl
