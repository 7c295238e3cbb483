// Whether this worker rests after a shutdown that all ranks have agreed on, or is through with the
// job, and what a sidecar that starts again must be told of that.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

#include "common/sync/mutex.h"

namespace ringmaster::elastic {

class RestStatus {
 public:
  // What a sidecar that has just started again may not know.
  struct Repeat {
    uint64_t resting_epoch = 0;   // 0: does not rest
    uint64_t finished_epoch = 0;  // 0: the job goes on
  };
  // A sidecar has sent its welcome; returns what it must be told. `may_rest`: it knows that workers
  // rest. Earlier versions take a shutdown for the end of the job.
  Repeat Welcomed(bool may_rest);

  // The ranks of this view have agreed on a shutdown, after which they may begin again.
  void Rests(uint64_t epoch);
  // The script is about to begin again.
  void Wakes();
  // This worker is through with the job that all ranks have shut down, and nobody begins again.
  void Finished(uint64_t epoch);

  // The sidecar lets this worker begin again after a shutdown.
  bool may_rest() const;
  // The epoch in which this worker rests; 0: it doesn't.
  uint64_t resting() const;

 private:
  mutable sync::Mutex mu_;
  bool may_rest_ GUARDED_BY(mu_) = false;
  uint64_t resting_ GUARDED_BY(mu_) = 0;   // epoch
  uint64_t finished_ GUARDED_BY(mu_) = 0;  // epoch
};

}  // namespace ringmaster::elastic
