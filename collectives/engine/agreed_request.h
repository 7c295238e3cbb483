// What all ranks have to ask for before any of them goes on, and what this rank's script may ask
// for again where it has lost patience: the library's shutdown, and its coming back.
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

  // *operation: completes when all ranks have asked for it. A second call waits for the agreement
  // that the first one has asked for and did not live to see, or finds that it has come meanwhile;
  // after one that has failed there is a new one. A failure is the inbox's.
  Status Ask(std::shared_ptr<Operation>* operation);
  // What has been agreed on is over: the next call asks for it anew.
  void Renew();

 private:
  Inbox* const inbox_;
  const std::string name_;
  const Kind kind_;

  sync::Mutex mu_;
  std::shared_ptr<Operation> asked_ GUARDED_BY(mu_);  // null: never asked for
};

}  // namespace ringmaster::engine
