// Converts the operator's messages to sidecars to protobuf (proto/operator.proto).
#pragma once

#include "operator.pb.h"
#include "operator/planner/decision.h"

namespace ringmaster::app {

// Of pods that are gone there is a message for each: for PodsGoneNotice nothing is set.
v1::OperatorNotice ToProto(const planner::Notice& notice);
v1::OperatorNotice ToProto(const planner::GonePod& pod);

}  // namespace ringmaster::app
