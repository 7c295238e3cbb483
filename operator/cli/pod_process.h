// Sends signals to processes of a pod on this machine. Their numbers come from the pod's sidecar,
// which may be wrong or lie: only a process that runs with the pod's uid in its environment is
// touched.
//
// Thread rule: none, nothing is kept.
#pragma once

#include <sys/types.h>

#include <string>

namespace ringmaster::cli {

// Kills the process (SIGKILL). Empty, or why it is left alone.
std::string KillProcessOfPod(pid_t pid, const std::string& pod_uid);

}  // namespace ringmaster::cli
