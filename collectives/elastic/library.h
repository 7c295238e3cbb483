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
#include "collectives/elastic/worker.h"
#include "collectives/fork_guard/fork_guard.h"
#include "collectives/timeline/timeline.h"
#include "common/sync/mutex.h"
#include "ringmaster/ringmaster.h"

namespace ringmaster::elastic {

// Never destroyed: threads of the user may still be here while the process exits.
struct Library {
  sync::Mutex init_mu;  // one rm_init or rm_shutdown at a time
  // Between a shutdown that all ranks have agreed on and the next rm_init, or the process's end.
  std::shared_ptr<Worker> resting GUARDED_BY(init_mu);
  sync::Mutex mu;
  std::shared_ptr<Worker> worker GUARDED_BY(mu);
  engine::StateRegistry state;
  timeline::Timeline timeline;
  HandleTable handles;

  static Library& Get();
};

// In a forked child there is none, and the last error says so: locks may be held there for ever.
std::shared_ptr<Worker> CurrentWorker();
Status NotInitialised();
// `otherwise` where `seconds` is not positive.
std::chrono::steady_clock::time_point Deadline(double seconds, double otherwise);

// Makes `status` the calling thread's last error.
rm_status Answer(const Status& status);
rm_status AnswerForked();
// Needs no memory.
rm_status AnswerOutOfMemory();
const char* LastError();

// Nothing is thrown through the C ABI.
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
