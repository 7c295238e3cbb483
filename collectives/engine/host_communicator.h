// The communicator, over the host's memory, of the view that this worker is in. Other threads may
// abort its calls, or a view that is being connected, and no abort is lost.
//
// An abort is for all views up to an epoch, and it stays: a view that the engine's thread begins to
// connect only afterwards ends the same way. So it doesn't matter whether the abort or the
// connecting comes first.
//
// Thread rule: Abort(), AbortCurrent() and Aborted() from any thread, the rest from the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "common/sync/mutex.h"
#include "ringmaster/communicator.h"

namespace ringmaster::engine {

// Makes the communicator of a view: the real one, or a fake with faults.
class CommunicatorFactory {
 public:
  virtual ~CommunicatorFactory() = default;
  virtual Status Create(const CommunicatorOptions& options, std::unique_ptr<Communicator>* out) = 0;
};

class HostCommunicator {
 public:
  // Gives up the current view and connects the one that `options` describe; options.stop is set
  // here. Errors are those of Communicator::Create. RM_ERR_EPOCH_MOVED: this view was aborted.
  Status Connect(CommunicatorFactory* factory, CommunicatorOptions options);
  // The view is over: closes the connections.
  void Drop();
  // Null: none. Valid until Connect() or Drop().
  Communicator* get() const { return current_; }

  // Ends all calls and attempts to connect in views up to `epoch`, now and later.
  void Abort(uint64_t epoch, const std::string& why);
  // The same for the current view or the one that is being connected. Returns its epoch; 0: there
  // is none.
  uint64_t AbortCurrent(const std::string& why);
  // Whether Abort() or AbortCurrent() has been called for this view.
  bool Aborted(uint64_t epoch);

 private:
  // Notes the abort and stops an attempt to connect. Returns the communicator if the caller has to
  // abort it; null otherwise.
  std::shared_ptr<Communicator> Interrupt(uint64_t epoch) REQUIRES(mu_);

  Communicator* current_ = nullptr;  // communicator_, for the engine's thread without the lock

  sync::Mutex mu_;
  std::shared_ptr<Communicator> communicator_ GUARDED_BY(mu_);
  std::stop_source connecting_ GUARDED_BY(mu_);
  uint64_t connecting_epoch_ GUARDED_BY(mu_) = 0;  // 0: not connecting
  uint64_t aborted_epoch_ GUARDED_BY(mu_) = 0;     // views up to this one are over
};

}  // namespace ringmaster::engine
