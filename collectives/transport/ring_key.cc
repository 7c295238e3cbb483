#include "collectives/transport/ring_key.h"

#include <sodium.h>

#include <cstring>

namespace ringmaster::transport {

static_assert(RingKey::kBytes == crypto_auth_hmacsha256_KEYBYTES);
static_assert(kProofBytes == crypto_auth_hmacsha256_BYTES);

RingKey::~RingKey() { sodium_memzero(bytes_.data(), bytes_.size()); }

Status RingKey::Create(std::string_view bytes, RingKey* out) {
  if (!bytes.empty() && bytes.size() != kBytes) {
    return Status(RM_ERR_INVALID, "the ring's key has " + std::to_string(bytes.size()) +
                                      " bytes, it must have " + std::to_string(kBytes));
  }
  RingKey key;
  key.present_ = !bytes.empty();
  std::memcpy(key.bytes_.data(), bytes.data(), bytes.size());
  *out = key;
  return Status();
}

bool RingKey::operator==(const RingKey& other) const {
  return present_ == other.present_ &&
         sodium_memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0;
}

Proof RingKey::Prove(std::string_view text) const {
  Proof proof;
  crypto_auth_hmacsha256(proof.data(), reinterpret_cast<const unsigned char*>(text.data()),
                         text.size(), bytes_.data());
  return proof;
}

bool RingKey::Proves(const Proof& proof, std::string_view text) const {
  return present_ && crypto_auth_hmacsha256_verify(
                         proof.data(), reinterpret_cast<const unsigned char*>(text.data()),
                         text.size(), bytes_.data()) == 0;
}

Nonce RandomNonce() {
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::string RandomHex(size_t bytes) {
  std::string random(bytes, '\0'), text(2 * bytes + 1, '\0');
  randombytes_buf(random.data(), random.size());
  sodium_bin2hex(text.data(), text.size(), reinterpret_cast<const unsigned char*>(random.data()),
                 random.size());
  text.pop_back();
  return text;
}

}  // namespace ringmaster::transport
