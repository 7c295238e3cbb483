// The arenas of a group's ranks: one channel of each, and the flags by which the ranks wait for
// each other. What each flag counts stands in arena.h.
//
// Owner: ShmGroup. Thread rule: the thread of the collective.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/transport/arena.h"
#include "collectives/transport/liveness_monitor.h"
#include "ringmaster/status.h"

namespace ringmaster::algorithms {

class ShmPeers {
 public:
  using FlagMember = transport::Flag transport::ControlBlock::*;

  // `channels` in rank order, the own one at `self`.
  ShmPeers(transport::LivenessMonitor* liveness, uint64_t epoch,
           std::vector<transport::ArenaChannel> channels, int self)
      : liveness_(liveness),
        tag_(transport::EpochTag(epoch)),
        channels_(std::move(channels)),
        self_(self) {}

  int self() const { return self_; }
  int size() const { return static_cast<int>(channels_.size()); }
  size_t count() const { return channels_.size(); }
  const transport::ArenaChannel& own() const { return channels_[static_cast<size_t>(self_)]; }
  const transport::ArenaChannel& operator[](size_t rank) const { return channels_[rank]; }
  const transport::ArenaChannel& operator[](int rank) const {
    return channels_[static_cast<size_t>(rank)];
  }

  // The waits that follow belong to the communicator's operation of this number.
  void Begin(uint64_t op_number) { op_number_ = op_number; }
  void Raise(FlagMember flag, uint64_t count) {
    transport::Raise(&(own().control()->*flag), tag_, count);
  }
  // Waits until the flag of `rank` has reached `count`.
  Status Wait(int rank, FlagMember flag, uint64_t count);
  // Waits until the flags of all other ranks have reached `count`.
  Status WaitAll(FlagMember flag, uint64_t count);
  // Waits until no rank reads any more from the slot that chunk `chunk` goes into.
  Status WaitForStageSlot(uint64_t chunk);

 private:
  transport::LivenessMonitor* const liveness_;
  const uint64_t tag_;
  const std::vector<transport::ArenaChannel> channels_;
  const int self_;

  uint64_t op_number_ = 0;
};

}  // namespace ringmaster::algorithms
