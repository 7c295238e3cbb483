#include "collectives/engine/host_communicator.h"

#include <algorithm>
#include <utility>

namespace ringmaster::engine {

Status HostCommunicator::Connect(CommunicatorFactory* factory, CommunicatorOptions options) {
  Drop();
  const uint64_t epoch = options.epoch;
  {
    sync::MutexLock lock(&mu_);
    if (epoch <= aborted_epoch_) return {RM_ERR_EPOCH_MOVED, "the view was stopped"};
    connecting_ = std::stop_source();
    connecting_epoch_ = epoch;
    options.stop = connecting_.get_token();
  }
  std::unique_ptr<Communicator> made;
  Status status = factory->Create(options, &made);
  sync::MutexLock lock(&mu_);
  connecting_epoch_ = 0;
  if (!status.ok()) return status;
  // An abort may have come after Create() had last looked at the stop token.
  if (epoch <= aborted_epoch_) return {RM_ERR_EPOCH_MOVED, "the view was stopped"};
  communicator_ = std::move(made);
  current_ = communicator_.get();
  return {};
}

void HostCommunicator::Drop() {
  // Destroyed after the lock is released, because the destructor sends a goodbye to the peers.
  std::shared_ptr<Communicator> dropped;
  sync::MutexLock lock(&mu_);
  current_ = nullptr;
  dropped = std::move(communicator_);
}

void HostCommunicator::Abort(uint64_t epoch, const std::string& why) {
  std::shared_ptr<Communicator> communicator;
  {
    sync::MutexLock lock(&mu_);
    communicator = Interrupt(epoch);
  }
  if (communicator != nullptr) communicator->Abort(why);
}

uint64_t HostCommunicator::AbortCurrent(const std::string& why) {
  std::shared_ptr<Communicator> communicator;
  uint64_t epoch = 0;
  {
    sync::MutexLock lock(&mu_);
    epoch = communicator_ == nullptr ? connecting_epoch_ : communicator_->epoch();
    communicator = Interrupt(epoch);
  }
  if (communicator != nullptr) communicator->Abort(why);
  return epoch;
}

bool HostCommunicator::Aborted(uint64_t epoch) {
  sync::MutexLock lock(&mu_);
  return epoch <= aborted_epoch_;
}

std::shared_ptr<Communicator> HostCommunicator::Interrupt(uint64_t epoch) {
  aborted_epoch_ = std::max(aborted_epoch_, epoch);
  if (connecting_epoch_ != 0 && connecting_epoch_ <= epoch) connecting_.request_stop();
  const bool aborted = communicator_ != nullptr && communicator_->epoch() <= epoch;
  return aborted ? communicator_ : nullptr;
}

}  // namespace ringmaster::engine
