#include "common/ring_key/ring_key.h"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ringmaster::ring_key {
namespace {

static_assert(kBytes == crypto_auth_hmacsha256_BYTES);

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

tl::unexpected<std::string> Failed(const std::filesystem::path& path) {
  return tl::unexpected(path.string() + ": " + std::strerror(errno));
}

bool Same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string Prove(std::string_view key, std::string_view purpose, std::string_view text) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, Bytes(key), key.size());
  crypto_auth_hmacsha256_update(&state, Bytes(purpose), purpose.size());
  crypto_auth_hmacsha256_update(&state, Bytes(text), text.size());
  std::string code(crypto_auth_hmacsha256_BYTES, '\0');
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(code.data()));
  return code;
}

bool Proves(std::string_view key, std::string_view purpose, std::string_view text,
            std::string_view code) {
  return Same(Prove(key, purpose, text), code);
}

std::string MakeRandom() {
  std::string key(kBytes, '\0');
  randombytes_buf(key.data(), key.size());
  return key;
}

std::string Derive(std::string_view secret, std::string_view job_uid) {
  return Prove(secret, "ringmaster ring key of job ", job_uid);
}

std::string MakeToken(std::string_view key) {
  const std::string code = Prove(key, "ringmaster token of sidecars", "");
  std::string text(2 * code.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), Bytes(code), code.size());
  text.pop_back();  // the NUL that ends a C string
  return text;
}

bool IsToken(std::string_view key, std::string_view claimed) {
  return Same(MakeToken(key), claimed);
}

std::string Encode(std::string_view key) {
  constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_ENCODED_LEN(key.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), Bytes(key), key.size(), kVariant);
  text.pop_back();  // the NUL that ends a C string
  return text;
}

std::optional<std::string> Decode(std::string_view text) {
  std::string key(kBytes, '\0');
  size_t bytes = 0;
  const char* end = nullptr;
  const int rc =
      sodium_base642bin(reinterpret_cast<unsigned char*>(key.data()), key.size(), text.data(),
                        text.size(), nullptr, &bytes, &end, sodium_base64_VARIANT_ORIGINAL);
  if (rc != 0 || bytes != kBytes || end != text.data() + text.size()) return std::nullopt;
  return key;
}

tl::expected<void, std::string> WriteFile(const std::filesystem::path& path, std::string_view key) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Failed(path);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return Failed(path);
  const bool written = write(fd, key.data(), key.size()) == static_cast<ssize_t>(key.size());
  const int error = errno;
  if (close(fd) == 0 && written) return {};
  if (!written) errno = error;
  return Failed(path);
}

tl::expected<std::string, std::string> ReadFile(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failed(path);
  std::string key(kBytes + 1, '\0');
  const ssize_t got = read(fd, key.data(), key.size());
  const int error = errno;
  close(fd);
  if (got < 0) {
    errno = error;
    return Failed(path);
  }
  if (got != static_cast<ssize_t>(kBytes)) {
    return tl::unexpected(path.string() + ": a ring's key has " + std::to_string(kBytes) +
                          " bytes, this file has " +
                          (got > static_cast<ssize_t>(kBytes) ? "more" : std::to_string(got)));
  }
  key.resize(kBytes);
  return key;
}

}  // namespace ringmaster::ring_key
