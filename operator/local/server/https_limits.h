// What clients of the embedded server may use up.
#pragma once

#include <chrono>
#include <cstddef>

namespace ringmaster::local {

struct HttpsLimits {
  std::size_t head_bytes = 64u << 10;
  std::size_t body_bytes = 8u << 20;
  std::chrono::milliseconds request_deadline{30'000};  // from its first byte to its last
  std::size_t strangers = 64;                          // connections that have shown no token
  std::size_t connections = 512;                       // at a time; more of them wait
  // The last of them: each ends with its first answer, and watches are sent away, so that whoever
  // waits is served soon.
  std::size_t short_connections = 64;
};

}  // namespace ringmaster::local
