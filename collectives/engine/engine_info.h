// What the engine's thread lets other threads read.
//
// Thread rule: any thread reads; only the engine's thread writes, except by ExpectMembership().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collectives/engine/rebuild_timer.h"
#include "collectives/engine/set_table.h"
#include "collectives/engine/work_meter.h"
#include "collectives/engine/worker_view.h"
#include "common/sync/mutex.h"

namespace ringmaster::engine {

class EngineInfo {
 public:
  Membership membership() const {
    sync::MutexLock lock(&mu_);
    return membership_;
  }
  void SetMembership(const Membership& membership, std::vector<std::string> workers) {
    sync::MutexLock lock(&mu_);
    membership_ = membership;
    workers_ = std::move(workers);
  }
  // The name of the worker that has this rank now (-1: this worker); empty if there is none.
  std::string WorkerAt(int rank) const {
    sync::MutexLock lock(&mu_);
    const int at = rank == -1 ? membership_.rank : rank;
    return at < 0 || at >= static_cast<int>(workers_.size()) ? "" : workers_[at];
  }
  std::vector<std::string> workers() const {
    sync::MutexLock lock(&mu_);
    return workers_;
  }
  StepRanks step_ranks() const {
    sync::MutexLock lock(&mu_);
    return step_ranks_;
  }
  void SetStepRanks(StepRanks ranks) {
    sync::MutexLock lock(&mu_);
    step_ranks_ = std::move(ranks);
  }
  // The members of a process set that are in the view, in the order of their ranks, and these
  // ranks. Either pointer may be null. False: there is no such set.
  bool MembersOf(int32_t process_set, std::vector<std::string>* members,
                 std::vector<int>* ranks) const {
    sync::MutexLock lock(&mu_);
    return FindMembers(process_set, workers_, members, ranks);
  }
  // The same of the step's ranks: with the members that have died or left since it began.
  bool StepMembersOf(int32_t process_set, std::vector<std::string>* members) const {
    sync::MutexLock lock(&mu_);
    return FindMembers(process_set, step_ranks_.workers, members, nullptr);
  }
  void SetSets(Sets sets) {
    sync::MutexLock lock(&mu_);
    sets_ = std::move(sets);
  }
  // What a joiner's rank, size and the like are to be before its first view.
  void ExpectMembership(const Membership& expected) {
    sync::MutexLock lock(&mu_);
    if (!entered) membership_ = expected;
  }
  RebuildTimes last_rebuild() const {
    sync::MutexLock lock(&mu_);
    return last_rebuild_;
  }
  void SetLastRebuild(RebuildTimes times) {
    sync::MutexLock lock(&mu_);
    last_rebuild_ = std::move(times);
  }

  std::atomic<bool> entered{false};  // this worker is in a view, with state
  // False: the engine's thread waits, and the view is connected, so nothing is under way.
  std::atomic<bool> busy{false};
  // This worker was in a view, the job goes on without it, and it has not been let in again.
  std::atomic<bool> dropped{false};
  std::atomic<uint64_t> step{0};       // steps completed
  std::atomic<uint64_t> ran_epoch{0};  // of the newest view in which an operation was executed
  // The newest view in which this worker has the job's state; 0: in none. A joiner gets it before
  // the view's first operation, and may be the last that has it.
  std::atomic<uint64_t> held_epoch{0};
  WorkMeter work;

 private:
  bool FindMembers(int32_t process_set, const std::vector<std::string>& workers,
                   std::vector<std::string>* members, std::vector<int>* ranks) const REQUIRES(mu_) {
    const auto set = sets_.find(process_set);
    if (process_set != 0 && set == sets_.end()) return false;
    for (size_t rank = 0; rank < workers.size(); ++rank) {
      if (process_set != 0 &&
          std::find(set->second.begin(), set->second.end(), workers[rank]) == set->second.end()) {
        continue;
      }
      if (members != nullptr) members->push_back(workers[rank]);
      if (ranks != nullptr) ranks->push_back(static_cast<int>(rank));
    }
    return true;
  }

  mutable sync::Mutex mu_;
  Membership membership_ GUARDED_BY(mu_);
  std::vector<std::string> workers_ GUARDED_BY(mu_);  // by rank
  StepRanks step_ranks_ GUARDED_BY(mu_);
  Sets sets_ GUARDED_BY(mu_);
  RebuildTimes last_rebuild_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::engine
