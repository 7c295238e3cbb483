#include "collectives/engine/refusals.h"

namespace ringmaster::engine {

void Refusals::Suspend(const std::string& why) {
  sync::MutexLock lock(&mu_);
  suspended_ = Status(RM_ERR_DROPPED, why);
}

void Refusals::Resume() {
  sync::MutexLock lock(&mu_);
  suspended_.reset();
}

void Refusals::Rest(const Status& why) {
  sync::MutexLock lock(&mu_);
  rests_ = why;
}

void Refusals::Wake() {
  sync::MutexLock lock(&mu_);
  rests_.reset();
}

bool Refusals::rests() const {
  sync::MutexLock lock(&mu_);
  return rests_.has_value();
}

void Refusals::Refuse(const Status& why) {
  sync::MutexLock lock(&mu_);
  if (!refused_) refused_ = why;
}

std::optional<Status> Refusals::refused() const {
  sync::MutexLock lock(&mu_);
  return refused_;
}

std::optional<Status> Refusals::current() const {
  sync::MutexLock lock(&mu_);
  if (refused_) return refused_;
  return rests_ ? rests_ : suspended_;
}

}  // namespace ringmaster::engine
