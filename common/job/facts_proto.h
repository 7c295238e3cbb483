// Converts facts about a job to and from the messages of proto/operator.proto, for both ends.
#pragma once

#include "common/job/registration.h"
#include "common/job/worker_exit.h"
#include "operator.pb.h"

namespace ringmaster::job {

v1::Registration ToProto(const Registration& registration);
Registration FromProto(const v1::Registration& in);

// The message has no pod name, because the stream on which it comes tells which pod it is about. It
// has no time either, and nothing about standbys, whose exits are not sent.
v1::WorkerExit ToProto(const WorkerExit& exit);
WorkerExit FromProto(const v1::WorkerExit& in);

}  // namespace ringmaster::job
