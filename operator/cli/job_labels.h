// The labels and annotations of a job's pods by which the command line finds them and their
// sidecars.
#pragma once

namespace ringmaster::cli {

inline constexpr char kJobNameLabel[] = "training.kubeflow.org/job-name";
// Where the pod's sidecar answers.
inline constexpr char kHttpAnnotation[] = "ringmaster.dev/http";

}  // namespace ringmaster::cli
