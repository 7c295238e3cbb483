// A world for tests, in which ranks are threads: they have real endpoints, communicators and
// engines, and the test plays the part of the sidecars.
//
// A fault happens at call k of a view's communicator. Every rank makes the same calls in the same
// order, so a test can say exactly which ranks complete call k and which don't; afterwards the view
// is dead for all of them.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collectives/element/element.h"
#include "collectives/engine/engine.h"

namespace ringmaster::engine {

struct Fault {
  int call = -1;            // -1: none
  std::set<int> completes;  // ids (not ranks) for which call `call` returns OK
};

class TestWorld;

// A real communicator whose calls are counted, and fail from the fault on.
class CountingCommunicator : public Communicator {
 public:
  // `calls`: counts the calls made in this view, also those of other objects that share the
  // counter.
  CountingCommunicator(TestWorld* world, int id, Fault fault, int* calls,
                       std::unique_ptr<Communicator> real)
      : world_(world), id_(id), fault_(std::move(fault)), calls_(calls), real_(std::move(real)) {}
  int rank() const override { return real_->rank(); }
  int size() const override { return real_->size(); }
  uint64_t epoch() const override { return real_->epoch(); }
  Status Allreduce(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op) override {
    if (dtype == RM_FLOAT32) NoteOnWire(count);
    return Call("allreduce", out, count * element::Size(dtype),
                [&] { return real_->Allreduce(in, out, count, dtype, op); });
  }
  Status Allgatherv(const void* send, void* recv, std::span<const size_t> bytes) override;
  Status Broadcast(void* data, size_t bytes, int root) override {
    return Call("broadcast", rank() == root ? nullptr : data, bytes,
                [&] { return real_->Broadcast(data, bytes, root); });
  }
  Status ReduceScatter(const void* in, void* out, std::span<const size_t> counts, rm_dtype dtype,
                       rm_op op) override {
    const size_t own = counts[static_cast<size_t>(rank())] * element::Size(dtype);
    return Call("reducescatter", out, own,
                [&] { return real_->ReduceScatter(in, out, counts, dtype, op); });
  }
  Status Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) override {
    return Call("alltoall", nullptr, 0, [&] { return real_->Alltoallv(send, recv, bytes); });
  }
  Status Barrier() override {
    return Call("barrier", nullptr, 0, [&] { return real_->Barrier(); });
  }
  // The subset's calls are counted apart, because not all ranks make them.
  Status Subset(std::span<const int> ranks, int channel,
                std::unique_ptr<Communicator>* out) override;
  Status CheckPeers() override { return real_->CheckPeers(); }
  void Abort(const std::string& why) override { real_->Abort(why); }
  const char* PathTo(int peer) const override { return real_->PathTo(peer); }
  std::span<std::byte> ArenaBuffer(size_t bytes) override { return real_->ArenaBuffer(bytes); }

 private:
  Status Call(const char* what, void* out, size_t bytes, const std::function<Status()>& real);
  void NoteOnWire(size_t count);

  TestWorld* const world_;
  const int id_;
  const Fault fault_;
  int* const calls_;
  const std::unique_ptr<Communicator> real_;
  bool is_subset_ = false;
};

// One worker, which would be a process outside of tests.
class TestWorker : public EngineListener, public CommunicatorFactory {
 public:
  TestWorker(TestWorld* world, int id, bool has_state);

  void OnStopped(uint64_t epoch) override;
  void OnInstalled(uint64_t epoch, double) override;
  void OnBoundary(uint64_t epoch, uint64_t step) override;
  void OnSuspect(uint64_t, int, const std::string&) override {}
  void OnBroken(uint64_t epoch, int rank, const std::string&) override;
  void OnRebuilt(const RebuildTimes&, uint64_t step, uint64_t resumed) override;
  void OnAbandoned(uint64_t epoch) override;
  void OnShutDown(uint64_t) override;
  void OnStalls(const std::vector<job::Stall>& stalls, bool came) override;
  Status Create(const CommunicatorOptions& options, std::unique_ptr<Communicator>* out) override;

  std::shared_ptr<Operation> Ask(Request request, const void* in, void* out, size_t rows = 0);
  Status Allreduce(const std::string& name, std::vector<float>* data, rm_op op = RM_SUM);

  const int id;
  TestWorld* const world;
  StateRegistry state;

  // For the view that the worker is in; used by the engine's thread only.
  int calls = 0;      // calls of its communicator, and of others that share the counter
  int set_calls = 0;  // calls of all its subsets together
  Fault call_fault;
  uint64_t call_epoch = 0;

  // Guarded by world->mu.
  uint64_t stopped = 0;
  int stops = 0;                     // how many stops it has answered
  std::function<void()> on_stopped;  // called by the engine's thread, without the lock
  uint64_t boundary = 0;
  std::vector<uint64_t> installed_views;
  std::map<uint64_t, int> broken;  // by epoch: the rank that OnBroken named
  uint64_t abandoned = 0;
  int finished = 0;
  int rebuilt = 0;
  std::vector<job::Stall> stalls;
  int told_stalls = 0;
  std::vector<size_t> on_wire;  // elements of each allreduce of floats, in their order

  // Last members, so that the engine's thread has ended before the others are destroyed.
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<Engine> engine;
};

inline std::vector<int> Without(std::vector<int> ids, int victim) {
  std::erase(ids, victim);
  return ids;
}

class TestWorld {
 public:
  using MakeBackend = std::function<std::unique_ptr<Backend>(TestWorker*)>;

  // `make_backend`: makes the backend of each worker's engine; empty: CpuBackend. `fusion_bytes`:
  // by id; workers that are not in it have 1 MiB.
  explicit TestWorld(int workers, bool shm = true, StallLimits stall = {},
                     MakeBackend make_backend = {}, std::map<int, size_t> fusion_bytes = {})
      : shm(shm),
        stall(stall),
        make_backend(std::move(make_backend)),
        fusion_bytes(std::move(fusion_bytes)) {
    for (int id = 0; id < workers; ++id) AddWorker(true);
  }
  TestWorker& AddWorker(bool has_state) {
    this->workers.push_back(
        std::make_unique<TestWorker>(this, static_cast<int>(this->workers.size()), has_state));
    return *this->workers.back();
  }
  ~TestWorld() {
    for (auto& worker : workers) worker->engine->PostEnd({RM_ERR_SHUTDOWN, "the test ends"});
  }

  static std::string NameOf(int id) { return "worker " + std::to_string(id); }

  // Does what the sidecars do before a new view: stops all views so far at the workers `ids`, and
  // waits until they have answered. Returns the newest epoch that was stopped.
  uint64_t Stop(const std::vector<int>& ids) {
    const uint64_t epoch = next_epoch - 1;
    for (int id : ids) workers[id]->engine->PostStop(epoch);
    Await([&] {
      for (int id : ids) {
        if (workers[id]->stopped < epoch) return false;
      }
      return true;
    });
    return epoch;
  }
  // Posts a stop of epoch 0, which changes nothing. When it is answered each of `ids` has finished
  // what its engine had begun.
  void StopNothing(const std::vector<int>& ids) {
    for (int id : ids) {
      TestWorker& worker = *workers[id];
      const int before = [&] {
        std::lock_guard lock(mu);
        return worker.stops;
      }();
      worker.engine->PostStop(0);
      Await([&] { return worker.stops > before; });
    }
  }
  // Posts a new view of the workers `ids`, whose ranks are in this order. Returns its epoch.
  uint64_t Install(const std::vector<int>& ids, const std::string& reason = "Bootstrap",
                   bool train = true, bool planned = false) {
    WorkerView view;
    view.epoch = next_epoch++;
    view.parent = view.epoch - 1;
    view.reason = reason;
    view.train = train;
    view.planned = planned;
    for (int id : ids) {
      view.peers.push_back(workers[id]->endpoint->Address());
      view.peers.back().pod = shm ? 0 : id;
      view.workers.push_back(NameOf(id));
    }
    for (size_t rank = 0; rank < ids.size(); ++rank) {
      view.self = static_cast<int>(rank);
      workers[ids[rank]]->engine->PostView(view);
    }
    return view.epoch;
  }
  void Enter(const std::vector<int>& ids) {
    for (int id : ids) {
      const Status s =
          workers[id]->engine->AwaitEntered(Engine::Clock::now() + std::chrono::seconds(30));
      ASSERT_TRUE(s.ok()) << "worker " << id << ": " << s.message();
    }
  }
  void Await(const std::function<bool()>& done) {
    std::unique_lock lock(mu);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), done)) << "waited too long";
  }

  // Each rank waits before its next round until ReleaseRounds().
  void HoldRounds() {
    std::lock_guard lock(mu);
    holds = true;
    held = 0;
  }
  void ReleaseRounds() {
    std::lock_guard lock(mu);
    holds = false;
    changed.notify_all();
  }
  void HoldHere() {
    std::unique_lock lock(mu);
    if (!holds) return;
    ++held;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(30), [this] { return !holds; });
  }

  const bool shm;
  const StallLimits stall;
  const MakeBackend make_backend;
  const std::map<int, size_t> fusion_bytes;
  std::mutex mu;
  std::condition_variable changed;
  uint64_t next_epoch = (uint64_t{1} << 40) + 1;
  std::map<uint64_t, Fault> faults;  // by epoch; set before Install
  // The same for calls of subsets, in worlds in which all ranks that make such calls make the same.
  std::map<uint64_t, Fault> set_faults;
  std::set<int> knows_no_step_ranks;  // ids; as a library that says no Holding::ranks_epoch
  std::map<uint64_t, std::set<int>>
      past_fault;  // guarded by mu: ids that have made the faulty call
  std::map<uint64_t, std::set<int>> past_set_fault;  // guarded by mu
  std::set<std::string> cut_in_set;                  // guarded by mu: which call it was
  std::map<uint64_t, int> most_calls;                // guarded by mu: calls made on a view
  std::chrono::milliseconds user_patience = std::chrono::seconds(10);  // of later workers
  bool holds = false;                                                  // guarded by mu
  int held = 0;                                                        // guarded by mu
  std::vector<std::unique_ptr<TestWorker>> workers;
};

inline Status CountingCommunicator::Subset(std::span<const int> ranks, int channel,
                                           std::unique_ptr<Communicator>* out) {
  std::unique_ptr<Communicator> real;
  if (Status s = real_->Subset(ranks, channel, &real); !s.ok()) return s;
  Fault fault;
  if (const auto found = world_->set_faults.find(epoch()); found != world_->set_faults.end())
    fault = found->second;
  int* const calls = &world_->workers[static_cast<size_t>(id_)]->set_calls;
  auto subset = std::make_unique<CountingCommunicator>(world_, id_, fault, calls, std::move(real));
  subset->is_subset_ = true;
  *out = std::move(subset);
  return {};
}

inline Status CountingCommunicator::Call(const char* what, void* out, size_t bytes,
                                         const std::function<Status()>& real) {
  const Status moved(RM_ERR_EPOCH_MOVED, "fault of the test");
  const int call = (*calls_)++;
  if (fault_.call >= 0 && call > fault_.call) return moved;
  Status status = real();
  std::lock_guard lock(world_->mu);
  if (!is_subset_) {
    int& most = world_->most_calls[epoch()];
    most = std::max(most, *calls_);
  }
  if (call != fault_.call) return status;
  (is_subset_ ? world_->past_set_fault : world_->past_fault)[epoch()].insert(id_);
  if (is_subset_) world_->cut_in_set.insert(what);
  world_->changed.notify_all();
  if (fault_.completes.contains(id_)) return status;
  if (out != nullptr && bytes > 0)
    std::memset(out, 0xAB, bytes);  // undefined after a failure, so nobody may use it
  return moved;
}

inline Status CountingCommunicator::Allgatherv(const void* send, void* recv,
                                               std::span<const size_t> bytes) {
  // A view begins with the lengths of what the ranks say of themselves (ExchangeHoldings).
  uint64_t length = 0;
  if (*calls_ == 0 && world_->knows_no_step_ranks.contains(id_)) {
    std::memcpy(&length, send, sizeof(length));
    length -= sizeof(uint64_t) + 1;  // without Holding::armed, too
    send = &length;
  }
  return Call("allgather", nullptr, 0, [&] { return real_->Allgatherv(send, recv, bytes); });
}

inline void CountingCommunicator::NoteOnWire(size_t count) {
  std::lock_guard lock(world_->mu);
  world_->workers[static_cast<size_t>(id_)]->on_wire.push_back(count);
}

inline TestWorker::TestWorker(TestWorld* world, int id, bool has_state) : id(id), world(world) {
  Endpoint::Options options;
  options.job = "test";
  options.arena_bytes = 4 << 20;
  options.shared_memory = world->shm;
  const Status status = Endpoint::Create(options, &endpoint);
  EXPECT_TRUE(status.ok()) << status.message();
  const auto own = world->fusion_bytes.find(id);
  const size_t fusion = own == world->fusion_bytes.end() ? size_t{1} << 20 : own->second;
  Engine::Options engine_options{this, this, &state, has_state, fusion};
  engine_options.stall = world->stall;
  engine_options.on_point = [this](FaultPoint point, uint64_t) {
    if (point == FaultPoint::kBeforeNegotiation) this->world->HoldHere();
  };
  engine_options.user_patience = world->user_patience;
  engine_options.direct = {.bytes = 2048, .segment = 2048, .segment_of_two_ranks = 2048};
  if (world->make_backend)
    engine_options.make_backend = [this] { return this->world->make_backend(this); };
  engine = std::make_unique<Engine>(std::move(engine_options));
}

inline void TestWorker::OnStopped(uint64_t epoch) {
  std::function<void()> then;
  {
    std::lock_guard lock(world->mu);
    stopped = std::max(stopped, epoch);
    ++stops;
    then = on_stopped;
    world->changed.notify_all();
  }
  if (then) then();
}
inline void TestWorker::OnInstalled(uint64_t epoch, double) {
  std::lock_guard lock(world->mu);
  installed_views.push_back(epoch);
  world->changed.notify_all();
}
inline void TestWorker::OnBoundary(uint64_t epoch, uint64_t) {
  std::lock_guard lock(world->mu);
  boundary = epoch;
  world->changed.notify_all();
}
inline void TestWorker::OnBroken(uint64_t epoch, int rank, const std::string&) {
  std::lock_guard lock(world->mu);
  broken.emplace(epoch, rank);
  world->changed.notify_all();
}
inline void TestWorker::OnRebuilt(const RebuildTimes&, uint64_t, uint64_t) {
  std::lock_guard lock(world->mu);
  ++rebuilt;
  world->changed.notify_all();
}
inline void TestWorker::OnAbandoned(uint64_t epoch) {
  std::lock_guard lock(world->mu);
  abandoned = epoch;
  world->changed.notify_all();
}

inline void TestWorker::OnShutDown(uint64_t) {
  std::lock_guard lock(world->mu);
  ++finished;
  world->changed.notify_all();
}
inline void TestWorker::OnStalls(const std::vector<job::Stall>& all, bool) {
  std::lock_guard lock(world->mu);
  stalls = all;
  ++told_stalls;
  world->changed.notify_all();
}
inline Status TestWorker::Create(const CommunicatorOptions& options,
                                 std::unique_ptr<Communicator>* out) {
  std::unique_ptr<Communicator> real;
  if (Status s = Communicator::Create(endpoint.get(), options, &real); !s.ok()) return s;
  Fault fault;
  if (const auto found = world->faults.find(options.epoch); found != world->faults.end())
    fault = found->second;
  calls = set_calls = 0;
  call_fault = fault;
  call_epoch = options.epoch;
  *out = std::make_unique<CountingCommunicator>(world, id, fault, &calls, std::move(real));
  return {};
}
inline std::shared_ptr<Operation> TestWorker::Ask(Request request, const void* in, void* out,
                                                  size_t rows) {
  auto operation = std::make_shared<Operation>(std::move(request), in, out, rows);
  if (Status s = engine->Submit(operation); !s.ok()) operation->Complete(s);
  return operation;
}
inline Status TestWorker::Allreduce(const std::string& name, std::vector<float>* data, rm_op op) {
  auto operation = Ask({name, Kind::kAllreduce, RM_FLOAT32, op, "", data->size(), 1.0, 1.0},
                       data->data(), data->data());
  if (!operation->WaitUntil(Engine::Clock::now() + std::chrono::seconds(30))) {
    return {RM_ERR_TIMEOUT, "'" + name + "' hangs"};
  }
  return operation->status();
}

// Runs `body(worker)` for each id on a thread of its own, and joins them.
inline void OnEach(TestWorld* world, const std::vector<int>& ids,
                   const std::function<void(TestWorker&)>& body) {
  std::vector<std::thread> threads;
  for (int id : ids) threads.emplace_back([&, id] { body(*world->workers[id]); });
  for (auto& thread : threads) thread.join();
}

}  // namespace ringmaster::engine
