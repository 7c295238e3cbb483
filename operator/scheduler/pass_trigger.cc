#include "operator/scheduler/pass_trigger.h"

namespace ringmaster::scheduler {

void PassTrigger::BeginPass() {
  asked_ = again_ = false;
  growth_seen_ = capacity_.growth();
  losses_seen_ = capacity_.losses();
}

}  // namespace ringmaster::scheduler
