// Converts the operator's messages to sidecars to protobuf (proto/operator.proto).
#pragma once

#include <cstdint>

#include "operator.pb.h"
#include "operator/planner/decision.h"

namespace ringmaster::app {

// Of pods that are gone there is a message for each: for PodsGoneNotice nothing is set.
v1::OperatorNotice ToProto(const planner::Notice& notice);
v1::OperatorNotice ToProto(const planner::GonePod& pod);
// As the message is sent: a deadline is also said as the time until it.
void AddTimeLeft(std::int64_t now_unix_ms, v1::OperatorNotice* notice);

}  // namespace ringmaster::app
