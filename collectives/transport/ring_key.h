// The ring key of a job: every member holds it, and nobody else does. A connection is believed when
// both its ends have proven that they hold it (handshake.h).
//
// Thread rule: a value; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ringmaster/status.h"

namespace ringmaster::transport {

inline constexpr size_t kProofBytes = 32;
using Proof = std::array<uint8_t, kProofBytes>;
using Nonce = std::array<uint8_t, 32>;

class RingKey {
 public:
  static constexpr size_t kBytes = 32;

  RingKey() = default;  // no key: nothing has to be proven
  ~RingKey();
  RingKey(const RingKey&) = default;
  RingKey& operator=(const RingKey&) = default;

  // `bytes`: kBytes of them, or none. RM_ERR_INVALID for any other length.
  static Status Create(std::string_view bytes, RingKey* out);

  bool present() const { return present_; }
  bool operator==(const RingKey& other) const;
  Proof Prove(std::string_view text) const;
  // Compares in constant time.
  bool Proves(const Proof& proof, std::string_view text) const;

 private:
  bool present_ = false;
  std::array<uint8_t, kBytes> bytes_ = {};
};

// What a process has to prove on a connection, and what it asks its peer to prove.
struct RingCredentials {
  std::string job;  // uid
  RingKey key;
  bool encrypt = false;  // over TCP; a connection is encrypted if either end wants it
};

Nonce RandomNonce();
// `bytes` random bytes as hexadecimal digits, for names that nobody can guess.
std::string RandomHex(size_t bytes);

}  // namespace ringmaster::transport
