// The host's communicator of ranks that are processes of one machine: enough of it for NcclBackend,
// and nothing to link. A rank that dies leaves the others waiting until the view is aborted.
//
// Thread rule: the rank's thread.
#pragma once

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "ringmaster/communicator.h"
#include "tests/gpu/drill_board.h"

namespace ringmaster::gpu_test {

class BoardCommunicator : public Communicator {
 public:
  BoardCommunicator(DrillBoard* board, int rank, int size, uint64_t epoch)
      : board_(board), meeting_(board->views[epoch]), rank_(rank), size_(size), epoch_(epoch) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  uint64_t epoch() const override { return epoch_; }
  Status Allgatherv(const void* send, void* recv, std::span<const size_t> bytes) override {
    return Meet(send, bytes[static_cast<size_t>(rank_)], [&] {
      auto* to = static_cast<std::byte*>(recv);
      for (int rank = 0; rank < size_; ++rank) {
        const size_t count = bytes[static_cast<size_t>(rank)];
        if (count > 0) std::memcpy(to, meeting_.said[rank], count);
        to += count;
      }
    });
  }
  Status Broadcast(void* data, size_t bytes, int root) override {
    return Meet(data, root == rank_ ? bytes : 0, [&] {
      if (root != rank_) std::memcpy(data, meeting_.said[root], bytes);
    });
  }
  Status Barrier() override {
    return Meet(nullptr, 0, [] {});
  }
  Status Allreduce(const void*, void*, size_t, rm_dtype, rm_op) override { return Lacking(); }
  Status ReduceScatter(const void*, void*, std::span<const size_t>, rm_dtype, rm_op) override {
    return Lacking();
  }
  Status Alltoallv(const void*, void*, std::span<const size_t>) override { return Lacking(); }
  Status Subset(std::span<const int>, int, std::unique_ptr<Communicator>*) override {
    return Lacking();
  }
  Status CheckPeers() override { return Lacking(); }
  void Abort(const std::string&) override {}
  const char* PathTo(int) const override { return "shm"; }
  std::span<std::byte> ArenaBuffer(size_t) override { return {}; }

 private:
  // All see what all have said, until the last has read it.
  Status Meet(const void* mine, size_t bytes, const std::function<void()>& read) {
    if (bytes > kMostBytes) return {RM_ERR_INTERNAL, "a rank says too much"};
    if (bytes > 0) std::memcpy(meeting_.said[rank_], mine, bytes);
    if (Status s = Wait(); !s.ok()) return s;
    read();
    return Wait();
  }
  Status Wait() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    const uint64_t round = meeting_.round;
    if (meeting_.arrived.fetch_add(1) + 1 == size_) {
      meeting_.arrived = 0;
      ++meeting_.round;
      return {};
    }
    while (meeting_.round == round) {
      if (board_->aborted_epoch >= epoch_) return {RM_ERR_EPOCH_MOVED, "the view was stopped"};
      if (std::chrono::steady_clock::now() > deadline)
        return {RM_ERR_TIMEOUT, "another rank did not come within 60 s"};
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return {};
  }
  static Status Lacking() { return {RM_ERR_INTERNAL, "these ranks have no such collective"}; }

  DrillBoard* const board_;
  Meeting& meeting_;
  const int rank_, size_;
  const uint64_t epoch_;
};

}  // namespace ringmaster::gpu_test
