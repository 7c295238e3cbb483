// A communicator of one rank without peers, for tests of the engine's parts: it records its calls,
// returns at once, and can be told to fail. And a factory of such communicators.
//
// Thread rule: Abort() from any thread, the rest from one.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "collectives/element/element.h"
#include "collectives/engine/host_communicator.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

class FakeCommunicator : public Communicator {
 public:
  FakeCommunicator(int rank, int size, uint64_t epoch = 1)
      : rank_(rank), size_(size), epoch_(epoch) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  uint64_t epoch() const override { return epoch_; }
  // Returns what would be the result if all ranks gave the same input.
  Status Allreduce(const void* in, void* out, size_t count, rm_dtype dtype, rm_op op) override {
    element::CopyScaled(in, out, count, dtype, op == RM_SUM ? size_ : 1);
    return Answer("allreduce");
  }
  Status Allgatherv(const void* send, void* recv, std::span<const size_t> bytes) override {
    auto* at = static_cast<std::byte*>(recv);
    for (size_t b : bytes) {
      if (b > 0) std::memcpy(at, send, b);
      at += b;
    }
    return Answer("allgather");
  }
  // If another rank is the root, `from_root` fills the data in.
  Status Broadcast(void* data, size_t bytes, int root) override {
    if (root != rank_ && from_root) from_root(data, bytes);
    return Answer("broadcast");
  }
  // Returns what would be the result if all ranks gave the same input.
  Status ReduceScatter(const void* in, void* out, std::span<const size_t> counts, rm_dtype dtype,
                       rm_op op) override {
    const auto* at = static_cast<const std::byte*>(in);
    for (int rank = 0; rank < rank_; ++rank) at += counts[rank] * element::Size(dtype);
    element::CopyScaled(at, out, counts[rank_], dtype, op == RM_SUM ? size_ : 1);
    return Answer("reducescatter");
  }
  Status Alltoallv(const void* send, void* recv, std::span<const size_t> bytes) override {
    size_t at = 0;
    for (int rank = 0; rank < size_; ++rank) {
      const size_t b = bytes[rank * size_ + rank_];
      if (b > 0) std::memcpy(static_cast<std::byte*>(recv) + at, send, b);
      at += b;
    }
    return Answer("alltoall");
  }
  Status Barrier() override { return Answer("barrier"); }
  Status Subset(std::span<const int> ranks, int channel,
                std::unique_ptr<Communicator>* out) override {
    channels.push_back(channel);
    const auto place = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
    *out = std::make_unique<FakeCommunicator>(static_cast<int>(place),
                                              static_cast<int>(ranks.size()), epoch_);
    return {};
  }
  Status CheckPeers() override { return aborted ? Status(RM_ERR_EPOCH_MOVED, why_) : peers; }
  void Abort(const std::string& why) override {
    aborted = true;
    why_ = why;
  }
  const char* PathTo(int) const override { return path; }
  std::span<std::byte> ArenaBuffer(size_t) override { return {}; }

  Status peers;  // what CheckPeers() answers unless there was an abort
  const char* path = "shm";
  std::vector<std::string> calls;
  int fail_at = -1;  // the call with this index fails
  std::function<void(void* data, size_t bytes)> from_root;
  std::vector<int> channels;  // of the subsets that were asked for
  std::atomic<bool> aborted{false};
  std::string why_;

 private:
  Status Answer(const char* call) {
    calls.push_back(call);
    if (fail_at == static_cast<int>(calls.size()) - 1) return {RM_ERR_EPOCH_MOVED, "told to fail"};
    return {};
  }

  const int rank_;
  const int size_;
  const uint64_t epoch_;
};

// Makes communicators at once, or waits in Create() until it is stopped.
class FakeFactory : public CommunicatorFactory {
 public:
  Status Create(const CommunicatorOptions& options, std::unique_ptr<Communicator>* out) override {
    ++created;
    if (before_return) before_return();
    if (hang) {
      std::mutex mu;
      std::condition_variable_any stopped;
      std::unique_lock lock(mu);
      hangs = true;
      stopped.wait(lock, options.stop, [] { return false; });
      return {RM_ERR_EPOCH_MOVED, "stopped"};
    }
    newest = options;
    if (!fails.ok()) return fails;
    *out = std::make_unique<FakeCommunicator>(0, 1, options.epoch);
    return {};
  }
  Status fails;                // what Create() answers
  CommunicatorOptions newest;  // of the newest Create()
  std::atomic<int> created{0};
  std::atomic<bool> hangs{false};
  bool hang = false;
  std::function<void()> before_return;
};

}  // namespace ringmaster::engine
