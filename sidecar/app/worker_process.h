// One worker process of this pod as the sidecar knows it, and what is reported of it.
//
// Plain data of the sidecar's loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/job/stall.h"
#include "common/job/worker_times.h"
#include "common/membership/view.h"

namespace ringmaster::app {

using membership::Epoch;
using membership::ViewPtr;
using SteadyTime = std::chrono::steady_clock::time_point;

struct WorkerProcess {
  int slot = -1;  // -1: a standby
  uint64_t incarnation = 0;
  uint64_t standby_incarnation = 0;  // by which a promoted standby says hello
  int64_t pid = 0;
  int64_t launcher_pid = 0;   // its launcher's child: itself, or a wrapper script that started it
  int64_t own_pid = 0;        // that it calls itself: in its container, as the launcher sees it
  uint64_t connection = 0;    // 0: none now
  bool greeted = false;       // has said hello to this sidecar, ever
  bool welcomed = false;      // on this connection
  bool says_standby = false;  // in its newest hello
  bool same_pids = false;     // its process ids are ours, so we can look whether it lives
  std::string tcp, shm;
  std::string library;  // its version; empty: has not said
  bool ready = false;   // has sent `enter`
  bool begins =
      false;  // was told last that it begins the job, so it believes that it holds the state
  bool loads = true;            // can be given the state of others
  bool keeps_timeline = false;  // can be asked for its newest events
  Epoch sent = 0;               // newest view sent to it
  Epoch installed = 0;          // newest view it has built
  Epoch stop_sent = 0, stopped = 0;
  Epoch boundary = 0;
  bool finished = false, left = false;
  uint64_t step = 0;
  std::map<std::string, double> values;
  job::WorkerTimes times;
  std::vector<job::Stall> stalls;  // in the view `stalls_epoch`
  Epoch stalls_epoch = 0;
  SteadyTime heard{};   // the last frame
  SteadyTime looked{};  // the launcher was asked what it does instead
  // Since then a signal has stopped it, says its launcher.
  std::optional<SteadyTime> halted_at = {};
  std::optional<SteadyTime> closed_at = {};  // its socket closed and nobody has said that it ended
  // Only a stored view names it: neither it nor the launcher has told this sidecar that it lives.
  bool unheard = false;
  bool standby() const { return slot < 0; }
};

}  // namespace ringmaster::app
