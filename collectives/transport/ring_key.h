// The key of a job's ring: every member holds it, nobody else does. Connections are believed when
// both ends have proven that they hold it (handshake.h).
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

  RingKey() = default;  // none: no connection is proven
  ~RingKey();
  RingKey(const RingKey&) = default;
  RingKey& operator=(const RingKey&) = default;

  // `bytes`: kBytes of them, or none.
  static Status Create(std::string_view bytes, RingKey* out);

  bool present() const { return present_; }
  bool operator==(const RingKey& other) const;
  Proof Prove(std::string_view text) const;
  // In constant time.
  bool Proves(const Proof& proof, std::string_view text) const;

 private:
  bool present_ = false;
  std::array<uint8_t, kBytes> bytes_ = {};
};

// What a process has to prove on a connection, and what it asks its peer to prove.
struct Credentials {
  std::string job;  // uid
  RingKey key;
  bool encrypt = false;  // over TCP; a connection is encrypted if either end wants it
};

Nonce RandomNonce();
// Hexadecimal digits that nobody can guess.
std::string RandomHex(size_t bytes);

}  // namespace ringmaster::transport
