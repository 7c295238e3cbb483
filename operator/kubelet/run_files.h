// The files that a run, or a node, makes in its run directory (docs/contracts.md, section 4) and
// removes when it ends, in whatever way. The directory may be one that its user has named, so
// everything else in it is the user's and stays.
#pragma once

namespace ringmaster::kubelet {

// "keep-logs" is of earlier versions.
inline constexpr const char* kRunFiles[] = {"kubeconfig", "operator.sock", "ring.key",
                                            "pods",       "nodes",         "node.id",
                                            "keep-logs",  "programs.tar",  "programs.tar.files"};
// Goes last: without it the other files would look like those of another program.
inline constexpr char kRunLock[] = "run.lock";

}  // namespace ringmaster::kubelet
