// The view of workers without a sidecar: their first and only one.
#pragma once

#include "collectives/engine/worker_view.h"

namespace ringmaster::elastic {

inline constexpr uint64_t kFirstEpoch = uint64_t{1} << 40 | 1;  // 1.1, as a job's first view

inline engine::WorkerView FirstView() {
  engine::WorkerView view;
  view.epoch = kFirstEpoch;
  view.reason = "Bootstrap";
  return view;
}

}  // namespace ringmaster::elastic
