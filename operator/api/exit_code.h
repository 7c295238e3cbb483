// Tells what exit codes of containers mean.
#pragma once

#include "common/failure_policy/failure_policy.h"

namespace ringmaster::api {

using failure_policy::SignalOfExit;

}  // namespace ringmaster::api
