// Sends signals to processes of a pod on this machine. The pod's sidecar reports the process ids
// and may be wrong or lie, so only a process with the pod's uid in its environment is signalled.
//
// Thread rule: none, nothing is kept.
#pragma once

#include <sys/types.h>

#include <string>

namespace ringmaster::cli {

// Kills the process (SIGKILL). Returns an empty text, or why it was not killed.
std::string KillProcessOfPod(pid_t pid, const std::string& pod_uid);

}  // namespace ringmaster::cli
