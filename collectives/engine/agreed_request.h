// An operation for which all ranks have to ask before any of them goes on: the library's shutdown,
// and its start after that. A script whose call has timed out may ask for it again.
//
// Thread rule: any thread.
#pragma once

#include <memory>
#include <string>

#include "collectives/engine/inbox.h"
#include "common/sync/mutex.h"

namespace ringmaster::engine {

class AgreedRequest {
 public:
  // `inbox` outlives this.
  AgreedRequest(Inbox* inbox, std::string name, Kind kind)
      : inbox_(inbox), name_(std::move(name)), kind_(kind) {}

  // *operation completes when all ranks have asked for it. If an earlier call has asked already and
  // has given up waiting, this one gets the same operation, which may have completed meanwhile;
  // after an operation that has failed it gets a new one. An error is the inbox's.
  Status Ask(std::shared_ptr<Operation>* operation);
  // What was agreed on is over: the next call asks for it again.
  void Renew();

 private:
  Inbox* const inbox_;
  const std::string name_;
  const Kind kind_;

  sync::Mutex mu_;
  std::shared_ptr<Operation> asked_ GUARDED_BY(mu_);  // null: never asked for
};

}  // namespace ringmaster::engine
