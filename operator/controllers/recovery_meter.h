// Makes one observation of each new view of a job. Every pod reports it, perhaps more than once.
// The caller passes the time.
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

// Beside the phases of a rebuild: all of them together.
inline constexpr char kTotal[] = "total";

class RecoveryMeter {
 public:
  using Clock = std::chrono::steady_clock;
  struct Recovery {
    std::string cause;
    job::PhaseSeconds seconds;  // by phase, and kTotal; each of the slowest pod
  };
  // Reports come within a moment of each other; a pod that takes longer has not recovered.
  static constexpr std::chrono::seconds kSettled{5};

  // `since_unix_ms`: another operator has counted the views that were installed earlier. Sidecars
  // repeat their last report to every operator.
  explicit RecoveryMeter(std::int64_t since_unix_ms) : since_unix_ms_(since_unix_ms) {}

  void Report(const std::string& job_uid, const job::Rebuild& rebuild, Clock::time_point now);
  // Returns the recoveries without a report for kSettled, each of them once.
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
