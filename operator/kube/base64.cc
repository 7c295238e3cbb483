#include "operator/kube/base64.h"

#include <openssl/evp.h>

#include <cctype>

namespace ringmaster::kube {

std::string EncodeBase64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock appends a zero
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(bytes.data()),
                                static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(n));
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  // OpenSSL requires whole groups without line breaks, and would take a '-' for the end.
  std::string digits;
  bool padded = false;
  for (char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    if (c == '=') {
      padded = true;
    } else if (padded || !(std::isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '/')) {
      return std::nullopt;
    } else {
      digits += c;
    }
  }
  const size_t bytes = digits.size() * 3 / 4;
  digits.append((4 - digits.size() % 4) % 4, 'A');
  std::string out(digits.size() / 4 * 3, '\0');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(digits.data()),
                                static_cast<int>(digits.size()));
  if (n < 0) return std::nullopt;
  out.resize(bytes);
  return out;
}

}  // namespace ringmaster::kube
