// Makes one observation of each new view of a job from what its pods report about it, each for
// itself and more than once. Time is handed in.
//
// Plain values; not safe from several threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/job/rebuild.h"

namespace ringmaster::controllers {

class RecoveryMeter {
 public:
  using Clock = std::chrono::steady_clock;
  struct Recovery {
    std::string cause;
    job::PhaseSeconds seconds;  // by phase, and "total"; of the slowest pod each
  };
  // Reports come within a moment of each other; a pod that hangs longer has not recovered.
  static constexpr std::chrono::seconds kSettled{5};

  // `since_unix_ms`: views that were installed earlier were another operator's to count. Sidecars
  // report their last one again to every operator.
  explicit RecoveryMeter(std::int64_t since_unix_ms) : since_unix_ms_(since_unix_ms) {}

  void Report(const std::string& job_uid, const job::Rebuild& rebuild, Clock::time_point now);
  // Those that nobody has reported on for kSettled; each is returned once.
  std::vector<Recovery> TakeSettled(Clock::time_point now);
  void Forget(const std::string& job_uid);

 private:
  struct Pending {
    Recovery recovery;
    Clock::time_point reported;
  };
  struct Job {
    std::map<std::uint64_t, Pending> pending;  // by epoch
    std::uint64_t newest_taken = 0;
  };

  const std::int64_t since_unix_ms_;
  std::map<std::string, Job> jobs_;  // by uid
};

}  // namespace ringmaster::controllers
