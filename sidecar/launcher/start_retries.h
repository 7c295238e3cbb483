// How often the start of a process that failed is tried again: where the reason may pass (no
// process or file can be made just now, or its program is being written) for about two minutes.
//
// Plain data.
#pragma once

#include <cerrno>
#include <chrono>
#include <optional>

#include "sidecar/launcher/restart_backoff.h"

namespace ringmaster::launcher {

class StartRetries {
 public:
  static constexpr int kMost = 10;

  // The error of a failed start. The answer: when to try again; nullopt: it won't work.
  std::optional<std::chrono::milliseconds> AfterFailure(int error) {
    const bool may_pass = error == EAGAIN || error == ENOMEM || error == EMFILE ||
                          error == ENFILE || error == ETXTBSY;
    if (!may_pass || failures_ >= kMost) return std::nullopt;
    ++failures_;
    return backoff_.AfterDeath({});
  }
  void Started() { *this = {}; }

 private:
  int failures_ = 0;  // in a row
  RestartBackoff backoff_;
};

}  // namespace ringmaster::launcher
