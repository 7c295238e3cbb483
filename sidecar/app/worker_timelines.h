// Asks the workers of this pod for their newest events, and gathers what they tell. It keeps no
// events: they are the workers', and what is gathered goes after its asker has let go of it.
//
// Owner: WorkerTable. Thread rule: the sidecar's loop only; time is handed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sidecar/app/launcher_peer.h"
#include "sidecar/app/pod_view.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

struct TimelineAsk {
  static constexpr int kMostSeconds = 60;
  static constexpr int kMostBytes = 8 << 20;  // some 60,000 events
  int seconds = 10;
  bool tensors = true;
  int bytes = kMostBytes;  // of all workers together; the oldest events are left out
};

// What one worker tells.
struct WorkerTimeline {
  int slot = -1;
  uint64_t incarnation = 0;
  int rank = -1;            // in the newest view; -1: none
  int process = 0;          // the number that its events carry, as `pid`
  uint64_t connection = 0;  // 0: it is not asked, `missing` says why
  std::string text;         // trace events, each after a comma
  bool whole = false;
  std::string missing;  // why there is nothing of it
};

class TimelineGathering {
 public:
  TimelineGathering(uint64_t number, SteadyTime deadline, size_t most_bytes)
      : number_(number), deadline_(deadline), most_bytes_(most_bytes) {}

  void Expect(WorkerTimeline worker) { workers_.push_back(std::move(worker)); }
  void OnPiece(uint64_t connection, const nlohmann::json& frame);
  // A worker whose connection has closed tells no more.
  void OnClosed(uint64_t connection);
  // All have told all, or their time is over: then the others are missing.
  bool Done(SteadyTime now);

  uint64_t number() const { return number_; }
  const std::vector<WorkerTimeline>& workers() const { return workers_; }

 private:
  WorkerTimeline* Awaited(uint64_t connection);

  const uint64_t number_;
  const SteadyTime deadline_;
  const size_t most_bytes_;  // of one worker
  std::vector<WorkerTimeline> workers_;
};

class WorkerTimelines {
 public:
  static constexpr size_t kMostAtOnce = 4;
  static constexpr std::chrono::milliseconds kPatience{1500};

  explicit WorkerTimelines(SendFrame send);

  // Null: as many as there may be are under way. A gathering is under way until its workers have
  // told all or its time is over, even if its asker has let go of it before; and as long as its
  // asker holds it.
  std::shared_ptr<TimelineGathering> Ask(const TimelineAsk& ask,
                                         const std::vector<WorkerProcess>& workers,
                                         const PodView& view, SteadyTime now);
  // What it has gathered is told.
  void Forget(uint64_t number);
  void OnPiece(const WorkerProcess& worker, const nlohmann::json& frame);
  void OnClosed(uint64_t connection);

 private:
  void ForgetDone(SteadyTime now);

  const SendFrame send_;
  uint64_t newest_;
  std::vector<std::shared_ptr<TimelineGathering>> under_way_;
};

}  // namespace ringmaster::app
