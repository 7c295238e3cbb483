#include "operator/kube/random_hex.h"

#include <openssl/rand.h>

#include <exception>

#include "common/hex/hex.h"

namespace ringmaster::kube {

std::string RandomHex(int bytes) {
  std::string raw(static_cast<size_t>(bytes), '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(raw.data()), bytes) != 1) std::terminate();
  return hex::Encode(raw);
}

}  // namespace ringmaster::kube
