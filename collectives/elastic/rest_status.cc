#include "collectives/elastic/rest_status.h"

namespace ringmaster::elastic {

RestStatus::Repeat RestStatus::Welcomed(bool may_rest) {
  sync::MutexLock lock(&mu_);
  may_rest_ = may_rest;
  // A sidecar of an earlier version has taken the place of one that knew of the rest. For it the
  // job has ended.
  if (resting_ != 0 && !may_rest_ && finished_ == 0) finished_ = resting_;
  // A worker that is through says also that it rests: its sidecar may know a newer view, which has
  // ended with the worker.
  return {may_rest_ ? resting_ : 0, finished_};
}

void RestStatus::Rests(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  resting_ = epoch;
}

void RestStatus::Wakes() {
  sync::MutexLock lock(&mu_);
  resting_ = 0;
}

void RestStatus::Finished(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  finished_ = epoch;
}

bool RestStatus::may_rest() const {
  sync::MutexLock lock(&mu_);
  return may_rest_ && finished_ == 0;
}

uint64_t RestStatus::resting() const {
  sync::MutexLock lock(&mu_);
  return resting_;
}

}  // namespace ringmaster::elastic
