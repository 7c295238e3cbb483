#include "collectives/nccl/patience.h"

#include <thread>

namespace ringmaster::nccl {
namespace {

// Small collectives take some 20 us. At first it is cheaper to ask again at once than to sleep.
constexpr std::chrono::microseconds kBusy{200}, kPause{50};

}  // namespace

Status Patience::Await(const std::string& what,
                       const std::function<std::optional<Status>()>& ended) const {
  const auto begin = Clock::now();
  while (true) {
    if (auto status = ended()) return *status;
    if (over_ && over_()) return {RM_ERR_EPOCH_MOVED, what + ": the view was stopped"};
    const auto now = Clock::now();
    if (now >= deadline_) {
      return {RM_ERR_TIMEOUT,
              what + " was not done after " + std::to_string(limit_.count()) + " ms"};
    }
    if (now - begin > kBusy) std::this_thread::sleep_for(kPause);
  }
}

}  // namespace ringmaster::nccl
