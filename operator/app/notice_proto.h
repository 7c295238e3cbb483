// Converts the operator's messages to sidecars to protobuf (proto/operator.proto).
#pragma once

#include "operator.pb.h"
#include "operator/planner/decision.h"

namespace ringmaster::app {

v1::OperatorNotice ToProto(const planner::Notice& notice);

}  // namespace ringmaster::app
