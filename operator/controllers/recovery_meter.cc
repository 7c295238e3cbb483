#include "operator/controllers/recovery_meter.h"

namespace ringmaster::controllers {
namespace {

// Bounds the memory that a job's endless reports could take.
constexpr std::size_t kMaxPending = 64;

}  // namespace

void RecoveryMeter::Report(const std::string& job_uid, const job::Rebuild& rebuild,
                           Clock::time_point now) {
  if (rebuild.at_unix_ms != 0 && rebuild.at_unix_ms < since_unix_ms_) return;
  Job& job = jobs_[job_uid];
  if (rebuild.epoch <= job.newest_taken) return;
  Pending& pending = job.pending[rebuild.epoch];
  pending.reported = now;
  Recovery& recovery = pending.recovery;
  if (recovery.cause.empty()) recovery.cause = rebuild.reason;
  job::KeepLongest(rebuild.seconds, &recovery.seconds);
  job::KeepLongest({{kTotal, job::TotalSeconds(rebuild.seconds)}}, &recovery.seconds);
  if (job.pending.size() > kMaxPending) job.pending.erase(job.pending.begin());
}

std::vector<RecoveryMeter::Recovery> RecoveryMeter::TakeSettled(Clock::time_point now) {
  std::vector<Recovery> settled;
  for (auto& [uid, job] : jobs_) {
    // Takes them in order of epoch, so that a late report about an older view is not counted again.
    for (auto at = job.pending.begin();
         at != job.pending.end() && now - at->second.reported >= kSettled;) {
      settled.push_back(std::move(at->second.recovery));
      job.newest_taken = at->first;
      at = job.pending.erase(at);
    }
  }
  return settled;
}

void RecoveryMeter::Forget(const std::string& job_uid) { jobs_.erase(job_uid); }

}  // namespace ringmaster::controllers
