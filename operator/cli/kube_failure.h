// Turns an API server's refusal into the command's message and exit code.
#pragma once

#include "operator/cli/outcome.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

inline Failure FromKube(const kube::Error& error) {
  switch (error.code) {
    case kube::ErrorCode::kInvalid:
      return {ExitCode::kUsage, error.message};
    case kube::ErrorCode::kUnavailable:
      return {ExitCode::kMachineLacks, error.message};
    default:
      return {ExitCode::kJobFailed, error.message};
  }
}

}  // namespace ringmaster::cli
