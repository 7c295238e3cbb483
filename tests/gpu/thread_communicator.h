// The host's communicator of ranks that are threads of one process: enough of it for NcclBackend,
// and nothing to link.
//
// Thread rule: one thread for each rank; Abort() from any.
#pragma once

#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ringmaster/communicator.h"

namespace ringmaster::gpu_test {

// A view's ranks.
class Meeting {
 public:
  explicit Meeting(int size) : boards_(static_cast<size_t>(size)) {}
  int size() const { return static_cast<int>(boards_.size()); }
  // All ranks see what all have put there, until the last has read it. False: aborted.
  bool Meet(int rank, const void* mine,
            const std::function<void(const std::vector<const void*>&)>& read) {
    boards_[static_cast<size_t>(rank)] = mine;
    if (!Wait()) return false;
    read(boards_);
    return Wait();
  }
  void Abort() {
    std::lock_guard lock(mu_);
    aborted_ = true;
    changed_.notify_all();
  }

 private:
  bool Wait() {
    std::unique_lock lock(mu_);
    const uint64_t round = round_;
    if (++arrived_ == boards_.size()) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      return round_ != round || aborted_;
    }) && !aborted_;
  }

  std::vector<const void*> boards_;
  std::mutex mu_;
  std::condition_variable changed_;
  size_t arrived_ = 0;
  uint64_t round_ = 0;
  bool aborted_ = false;
};

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Meeting> meeting, int rank, uint64_t epoch)
      : meeting_(std::move(meeting)), rank_(rank), epoch_(epoch) {}
  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }
  uint64_t epoch() const override { return epoch_; }
  Status Allgatherv(const void* send, void* recv, std::span<const size_t> bytes) override {
    return Meet(send, [&](const auto& boards) {
      auto* to = static_cast<std::byte*>(recv);
      for (size_t rank = 0; rank < boards.size(); ++rank) {
        if (bytes[rank] > 0) std::memcpy(to, boards[rank], bytes[rank]);
        to += bytes[rank];
      }
    });
  }
  Status Broadcast(void* data, size_t bytes, int root) override {
    return Meet(data, [&](const auto& boards) {
      if (root != rank_) std::memcpy(data, boards[static_cast<size_t>(root)], bytes);
    });
  }
  Status Barrier() override {
    return Meet(nullptr, [](const auto&) {});
  }
  Status Allreduce(const void*, void*, size_t, rm_dtype, rm_op) override { return Lacking(); }
  Status ReduceScatter(const void*, void*, std::span<const size_t>, rm_dtype, rm_op) override {
    return Lacking();
  }
  Status Alltoallv(const void*, void*, std::span<const size_t>) override { return Lacking(); }
  Status Subset(std::span<const int>, std::unique_ptr<Communicator>*) override { return Lacking(); }
  void Abort(const std::string&) override { meeting_->Abort(); }
  const char* PathTo(int) const override { return "shm"; }
  std::span<std::byte> ArenaBuffer(size_t) override { return {}; }

 private:
  Status Meet(const void* mine, const std::function<void(const std::vector<const void*>&)>& read) {
    if (meeting_->Meet(rank_, mine, read)) return {};
    return {RM_ERR_EPOCH_MOVED, "the view was stopped"};
  }
  static Status Lacking() { return {RM_ERR_INTERNAL, "these ranks have no such collective"}; }

  const std::shared_ptr<Meeting> meeting_;
  const int rank_;
  const uint64_t epoch_;
};

}  // namespace ringmaster::gpu_test
