// When pods that leave should have gone. It counts from the moment at which the operator first saw
// a pod leave, on the operator's own clock: the API server's may differ by minutes.
//
// Thread rule: none; the owner's lock guards it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/kube/kube_api.h"
#include "operator/scheduler/moment.h"

namespace ringmaster::controllers {

class LeavingPods {
 public:
  // nullopt: the pod stays. It is being deleted, or was told to leave; where it is deleted after it
  // was told, its time begins anew.
  std::optional<scheduler::Moment> By(const kube::Json& pod, scheduler::Moment now);
  void Remove(const std::string& uid) { known_.erase(uid); }

 private:
  struct Leaving {
    std::string since;  // what the pod says of it; only compared
    scheduler::Moment by;
  };
  std::map<std::string, Leaving> known_;  // by uid
};

}  // namespace ringmaster::controllers
