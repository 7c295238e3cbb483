// The pods of a schedule, and what can be read off them: who sleeps, whose process is which, and
// what each clock says.
//
// Owner: World. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/names.h"
#include "tests/sim/pod.h"
#include "tests/sim/stream_table.h"
#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

class Pods {
 public:
  explicit Pods(const Timeline* time) : time_(time) {}

  // Its number.
  int Add(int slots) {
    pods_.push_back(std::make_unique<SimPod>(slots));
    return size() - 1;
  }
  int size() const { return static_cast<int>(pods_.size()); }
  SimPod* operator[](int pod) const { return pods_[static_cast<std::size_t>(pod)].get(); }
  auto begin() const { return pods_.begin(); }
  auto end() const { return pods_.end(); }

  // What its steady clock says.
  Micros Local(const SimPod& pod) const;
  bool Asleep(const SimPod& pod) const;
  // Its sidecar runs.
  bool Reachable(int pod) const {
    return pods_[static_cast<std::size_t>(pod)]->agent != nullptr && !Asleep(*(*this)[pod]);
  }

  // The connections of their processes to their sidecars.
  StreamTable& streams() { return streams_; }
  const StreamTable& streams() const { return streams_; }

  // ---- Their processes
  std::int64_t NextPid() { return next_pid_++; }
  // Null: there is none.
  WorkerPtr Find(int pod, int slot, std::uint64_t incarnation) const;
  // Null for each that is gone.
  std::vector<WorkerPtr> RanksOf(const membership::View& view) const;
  std::string NameOf(const Worker& worker) const;
  bool Frozen(const Worker& worker) const;
  // Does work in the process, when that does not stand still.
  void ToWorker(const WorkerPtr& worker, std::function<void()> work);

 private:
  const Timeline* const time_;
  std::vector<std::unique_ptr<SimPod>> pods_;
  StreamTable streams_;
  std::int64_t next_pid_ = 1000;
};

}  // namespace ringmaster::app::sim
