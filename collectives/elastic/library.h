// The library in this process, as the files of the C ABI share it: the worker, the handles, the
// calling thread's last error.
//
// Thread rule: any thread.
#pragma once

#include <chrono>
#include <memory>
#include <new>
#include <string>

#include "collectives/elastic/handle_table.h"
#include "collectives/elastic/training_process.h"
#include "collectives/fork_guard/fork_guard.h"
#include "collectives/timeline/timeline.h"
#include "common/sync/mutex.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

// Never destroyed: threads of the user may still be here while the process exits.
struct Library {
  sync::Mutex init_mu;  // one rm_init or rm_shutdown at a time
  // The worker between a shutdown that all ranks have agreed on and the next rm_init or the end of
  // the process.
  std::shared_ptr<TrainingProcess> resting GUARDED_BY(init_mu);
  sync::Mutex mu;
  std::shared_ptr<TrainingProcess> worker GUARDED_BY(mu);
  int last_rank GUARDED_BY(mu) = -1;  // of the last worker
  engine::StateRegistry state;
  timeline::Timeline timeline;
  HandleTable handles;
  GroupTable groups;

  static Library& Get();
};

// The worker, or null outside of rm_init and rm_shutdown. In a forked child it is null, and the
// last error says so: locks may be held there for ever.
std::shared_ptr<TrainingProcess> CurrentWorker();
Status NotInitialised();
// In `seconds` from now; for ever if they are too many for the clock.
std::chrono::steady_clock::time_point Deadline(double seconds);
// The same; no limit if `seconds` is not positive.
TrainingProcess::Limit LimitOf(double seconds);

// Makes `status` the calling thread's last error.
rm_status Answer(const Status& status);
rm_status AnswerForked();
// Allocates no memory.
rm_status AnswerOutOfMemory();
const char* LastError();

// Runs `body` and makes its status, or what it throws, the last error: nothing may be thrown
// through the C ABI.
template <typename Body>
rm_status Guarded(Body body) {
  try {
    if (fork_guard::InChild()) return AnswerForked();
    return Answer(body());
  } catch (const std::bad_alloc&) {
    return AnswerOutOfMemory();
  } catch (const std::exception& error) {
    return Answer({RM_ERR_INTERNAL, error.what()});
  }
}

}  // namespace ringmaster::elastic
