// Exit codes of containers: 128 + N where signal N ended the process. Codes above 192 are none:
// sys.exit(-1) gives 255, and so does a container runtime that doesn't know how a container ended.
#pragma once

#include <optional>

namespace ringmaster::api {

constexpr std::optional<int> SignalOfExit(int exit_code) {
  constexpr int kLastSignal = 64;
  if (exit_code <= 128 || exit_code > 128 + kLastSignal) return std::nullopt;
  return exit_code - 128;
}

}  // namespace ringmaster::api
