// The rebuilds and the progress of the training so far: those of this pod's workers, and of others
// before this pod came. Feeds the metrics of both.
//
// Thread rule: the sidecar's loop only; time is handed in.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "sidecar/app/progress.h"
#include "sidecar/app/rebuild_tracker.h"
#include "sidecar/app/training_record.h"
#include "sidecar/app/worker_process.h"
#include "sidecar/health/rebuild_log.h"

namespace ringmaster::health {
class Metrics;
}

namespace ringmaster::app {

class TrainingHistory {
 public:
  TrainingHistory(int slots, health::Metrics* metrics) : slots_(slots), metrics_(metrics) {}

  // The rebuild that this view is; null for the first view this pod ever had.
  const job::Rebuild* Installed(const membership::View* before, const membership::View& view,
                                SteadyTime now, int64_t unix_ms);
  // A worker has completed the view's first operation. Null if the rebuild is not known.
  const job::Rebuild* Rebuilt(const job::Rebuild& figures);
  void Remember(const std::vector<WorkerProcess>& workers, const ViewPtr& installed);
  void Sample(const std::vector<WorkerProcess>& workers, const ViewPtr& installed, SteadyTime now,
              int64_t unix_ms);

  // What it remembers of before that time and that view, a page of it, the newest:
  // {"periodSeconds", "values", "samples": as GET /history, "rebuilds": as GET /status}
  nlohmann::json Before(int64_t unix_ms, Epoch epoch) const;
  // Takes such a page of another sidecar; what is asked for next is set to what is before it.
  // False: there was nothing in it.
  bool Take(const nlohmann::json& page, int64_t* unix_ms, Epoch* epoch);
  // What it has seen while it waited to join goes, and nothing is added until the others have told
  // what they have seen: they know more of the steps.
  void PauseRecord() {
    record_.Clear();
    paused_ = true;
  }
  void ResumeRecord() { paused_ = false; }

  RebuildTracker& tracker() { return tracker_; }
  const health::RebuildLog& rebuilds() const { return rebuilds_; }
  const Progress& progress() const { return progress_; }
  const TrainingRecord& record() const { return record_; }

 private:
  const int slots_;
  health::Metrics* const metrics_;
  health::RebuildLog rebuilds_;
  RebuildTracker tracker_{&rebuilds_};
  Progress progress_;
  TrainingRecord record_;
  bool paused_ = false;
};

}  // namespace ringmaster::app
