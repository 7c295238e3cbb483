// The view of those who begin without a sidecar: it is the first, and the only one.
#pragma once

#include "collectives/engine/view.h"

namespace ringmaster::elastic {

inline constexpr uint64_t kFirstEpoch = uint64_t{1} << 40 | 1;  // 1.1, as a job's first view

inline engine::View FirstView() {
  engine::View view;
  view.epoch = kFirstEpoch;
  view.reason = "Bootstrap";
  return view;
}

}  // namespace ringmaster::elastic
