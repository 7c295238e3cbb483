// Whether a failed create has left nothing behind. After an error without an answer (a deadline, a
// closed connection) the object may exist.
#pragma once

#include "operator/kube/kube_api.h"

namespace ringmaster::kube {

// The object was not created and will not be. A create can't conflict with anything else: kConflict
// is the answer while a quota is being counted.
inline bool CreationWasRefused(const Error& error) {
  return error.code == ErrorCode::kInvalid || error.code == ErrorCode::kForbidden ||
         error.code == ErrorCode::kTooManyRequests || error.code == ErrorCode::kConflict;
}

}  // namespace ringmaster::kube
