// An operation for which all ranks have to ask before any of them goes on: the shutdown of the
// library, and its new start after that. A script whose call has timed out may call again and goes
// on waiting for the same operation.
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

  // *operation completes when all ranks have asked for it. If an earlier call has asked for it
  // already and has given up waiting, this call gets the same operation, which may have completed
  // meanwhile; after an operation that has failed it gets a new one. Errors are those of
  // Inbox::Submit.
  Status Ask(std::shared_ptr<Operation>* operation);
  // What was agreed on has come to its end, so the next Ask() asks for a new operation.
  void Renew();

 private:
  Inbox* const inbox_;
  const std::string name_;
  const Kind kind_;

  sync::Mutex mu_;
  std::shared_ptr<Operation> asked_ GUARDED_BY(mu_);  // null: never asked for
};

}  // namespace ringmaster::engine
