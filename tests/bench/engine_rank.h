// One rank of the benchmark that calls through the engine: what a worker does with a view, without
// its sidecar.
//
// Thread rule: the engine calls the listener and the factory on its own thread, the rest is the
// caller's.
#pragma once

#include <memory>
#include <string>

#include "collectives/engine/engine.h"

namespace ringmaster::bench {

class EngineRank : public engine::EngineListener, public engine::CommunicatorFactory {
 public:
  EngineRank(Endpoint* endpoint, const CommunicatorOptions& options)
      : endpoint_(endpoint),
        allow_shm_(options.allow_shm),
        engine_(engine::EngineOptions{this, this, &state_}) {
    engine::WorkerView view;
    view.epoch = options.epoch;
    view.parent = options.epoch - 1;
    view.reason = "Bootstrap";
    view.train = true;
    view.self = options.rank;
    view.peers = options.peers;
    for (size_t rank = 0; rank < options.peers.size(); ++rank)
      view.workers.push_back("worker " + std::to_string(rank));
    engine_.PostView(std::move(view));
  }
  Status AwaitEntered() {
    return engine_.AwaitEntered(engine::Engine::Clock::now() + std::chrono::seconds(60));
  }

  // A sum of floats under one name, as a step has it in each of its repetitions.
  Status Allreduce(const float* in, float* out, size_t count) {
    return Run({"gradient " + std::to_string(count), engine::Kind::kAllreduce, RM_FLOAT32, RM_SUM,
                "", count, 1.0, 1.0},
               in, out);
  }
  Status Barrier() { return Run({"barrier", engine::Kind::kBarrier}, nullptr, nullptr); }

  void OnStopped(uint64_t) override {}
  void OnInstalled(uint64_t, double) override {}
  void OnBoundary(uint64_t, uint64_t) override {}
  void OnSuspect(uint64_t, int, const std::string&) override {}
  void OnBroken(uint64_t, int, const std::string&) override {}
  void OnRebuilt(const engine::RebuildTimes&, uint64_t, uint64_t) override {}
  void OnAbandoned(uint64_t) override {}
  void OnShutDown(uint64_t) override {}
  void OnStalls(const std::vector<job::Stall>&, bool) override {}
  Status Create(const CommunicatorOptions& options, std::unique_ptr<Communicator>* out) override {
    CommunicatorOptions own = options;
    own.allow_shm = allow_shm_;
    return Communicator::Create(endpoint_, own, out);
  }

 private:
  Status Run(engine::Request request, const void* in, void* out) {
    const auto operation = std::make_shared<engine::Operation>(std::move(request), in, out);
    if (Status s = engine_.Submit(operation); !s.ok()) return s;
    (void)operation->WaitUntil(engine::Engine::Clock::time_point::max());
    return operation->status();
  }

  Endpoint* const endpoint_;
  const bool allow_shm_;
  engine::StateRegistry state_;
  engine::Engine engine_;  // last, so that its thread has ended before the rest goes
};

}  // namespace ringmaster::bench
