// The facts about a job as gRPC carries them (proto/operator.proto): one place for both ends.
#pragma once

#include "common/job/registration.h"
#include "common/job/worker_exit.h"
#include "operator.pb.h"

namespace ringmaster::job {

v1::Registration ToProto(const Registration& registration);
Registration FromProto(const v1::Registration& in);

// The message carries neither the pod's name, nor standbys, nor times: the stream on which it comes
// tells which pod it is about.
v1::WorkerExit ToProto(const WorkerExit& exit);
WorkerExit FromProto(const v1::WorkerExit& in);

}  // namespace ringmaster::job
