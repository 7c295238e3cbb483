#include "collectives/transport/sealed_stream.h"

#include <openssl/evp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>

namespace ringmaster::transport {
namespace {

constexpr size_t kLength = sizeof(uint32_t);
constexpr size_t kProof = 16;

// Initialises OpenSSL without the configuration that the program may have for its own use of it,
// and without a cleanup at exit, when other threads may still encrypt.
const EVP_CIPHER* ChaCha20Poly1305() {
  static std::once_flag once;
  std::call_once(once, [] {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr);
  });
  return EVP_chacha20_poly1305();
}

EVP_CIPHER_CTX* MakeCipher(const std::array<uint8_t, 32>& key, bool encrypts) {
  EVP_CIPHER_CTX* const cipher = EVP_CIPHER_CTX_new();
  if (cipher == nullptr ||
      EVP_CipherInit_ex(cipher, ChaCha20Poly1305(), nullptr, key.data(), nullptr, encrypts) != 1) {
    throw std::bad_alloc();
  }
  return cipher;
}

// A key is used for one direction of one connection only, so the number of a record can be its
// nonce.
void Begin(EVP_CIPHER_CTX* cipher, uint64_t number, const uint8_t* length) {
  uint8_t nonce[12] = {};
  std::memcpy(nonce, &number, sizeof(number));
  EVP_CipherInit_ex(cipher, nullptr, nullptr, nullptr, nonce, -1);
  int ignored = 0;
  EVP_CipherUpdate(cipher, nullptr, &ignored, length, kLength);
}

}  // namespace

void SealedStream::FreeCipher::operator()(evp_cipher_ctx_st* cipher) const {
  EVP_CIPHER_CTX_free(cipher);  // and wipes the key
}

SealedStream::SealedStream(const StreamKeys& keys)
    : sealing_(MakeCipher(keys.out, true)), opening_(MakeCipher(keys.in, false)) {}

SealedStream::~SealedStream() = default;

ssize_t SealedStream::Send(int fd, std::span<const iovec> parts) {
  if (record_text_ == 0) Seal(parts);
  return Flush(fd);
}

void SealedStream::Seal(std::span<const iovec> parts) {
  record_.resize(kLength + kMostText + kProof);
  uint8_t* const text = record_.data() + kLength;
  size_t length = 0;
  for (const iovec& part : parts) {
    const size_t taken = std::min(part.iov_len, kMostText - length);
    std::memcpy(text + length, part.iov_base, taken);
    length += taken;
  }
  const auto sealed = static_cast<uint32_t>(length + kProof);
  std::memcpy(record_.data(), &sealed, kLength);
  Begin(sealing_.get(), sent_++, record_.data());
  int done = 0;
  EVP_CipherUpdate(sealing_.get(), text, &done, text, static_cast<int>(length));
  EVP_CipherFinal_ex(sealing_.get(), text + done, &done);
  EVP_CIPHER_CTX_ctrl(sealing_.get(), EVP_CTRL_AEAD_GET_TAG, kProof, text + length);
  record_.resize(kLength + sealed);
  record_sent_ = 0;
  record_text_ = length;
}

ssize_t SealedStream::Flush(int fd) {
  while (record_sent_ < record_.size()) {
    const ssize_t rc = send(fd, record_.data() + record_sent_, record_.size() - record_sent_,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
    if (rc < 0) return -1;
    record_sent_ += static_cast<size_t>(rc);
  }
  const size_t text = record_text_;
  record_text_ = 0;
  return static_cast<ssize_t>(text);
}

size_t SealedStream::RecordBytes() const {
  uint32_t sealed = 0;
  std::memcpy(&sealed, arrived_.data() + begin_, kLength);
  return kLength + sealed;
}

int SealedStream::AwaitRecord(int fd) {
  arrived_.resize(2 * (kLength + kMostText + kProof));
  while (true) {
    if (end_ - begin_ >= kLength) {
      const size_t whole = RecordBytes();
      if (whole <= kLength + kProof || whole > kLength + kMostText + kProof) {
        errno = EBADMSG;
        return -1;
      }
      if (end_ - begin_ >= whole) return 1;
    }
    if (begin_ > 0) {
      std::memmove(arrived_.data(), arrived_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const ssize_t rc = recv(fd, arrived_.data() + end_, arrived_.size() - end_, MSG_DONTWAIT);
    if (rc <= 0) return static_cast<int>(rc);
    end_ += static_cast<size_t>(rc);
  }
}

ssize_t SealedStream::Open(void* text) {
  const size_t whole = RecordBytes();
  uint8_t* const record = arrived_.data() + begin_;
  const size_t length = whole - kLength - kProof;
  Begin(opening_.get(), received_++, record);
  int done = 0;
  auto* const to = static_cast<uint8_t*>(text);
  EVP_CIPHER_CTX_ctrl(opening_.get(), EVP_CTRL_AEAD_SET_TAG, kProof, record + kLength + length);
  EVP_CipherUpdate(opening_.get(), to, &done, record + kLength, static_cast<int>(length));
  if (EVP_CipherFinal_ex(opening_.get(), to + done, &done) != 1) {
    end_ = begin_ = 0;
    errno = EBADMSG;
    return -1;
  }
  begin_ += whole;
  return static_cast<ssize_t>(length);
}

int SealedStream::Unpack(int fd) {
  if (text_at_ < text_.size()) return 1;
  const int there = AwaitRecord(fd);
  if (there <= 0) return there;
  text_.resize(RecordBytes() - kLength - kProof);
  text_at_ = 0;
  if (Open(text_.data()) >= 0) return 1;
  text_.clear();
  return -1;
}

ssize_t SealedStream::Receive(int fd, void* into, size_t room) {
  if (text_at_ == text_.size()) {
    // A record for which there is room is decrypted straight into the caller's buffer.
    const int there = AwaitRecord(fd);
    if (there <= 0) return there;
    if (RecordBytes() - kLength - kProof <= room) return Open(into);
  }
  const ssize_t taken = Peek(fd, into, room);
  if (taken > 0) text_at_ += static_cast<size_t>(taken);
  return taken;
}

ssize_t SealedStream::Peek(int fd, void* into, size_t room) {
  const int there = Unpack(fd);
  if (there <= 0) return there;
  const size_t seen = std::min(room, text_.size() - text_at_);
  std::memcpy(into, text_.data() + text_at_, seen);
  return static_cast<ssize_t>(seen);
}

}  // namespace ringmaster::transport
