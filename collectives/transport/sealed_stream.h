// The bytes of an encrypted connection: records that are encrypted and authenticated
// (ChaCha20-Poly1305), each with a number that only rises, so that none can be changed, left out,
// repeated or put elsewhere. The keys are those of one connection and one direction.
//
// A record is its length (4 bytes, authenticated with it), the encrypted text, and 16 bytes of
// proof.
//
// Thread rule: the owner's.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

struct evp_cipher_ctx_st;

namespace ringmaster::transport {

// The keys of one end: what it sends is encrypted with `out`, what it receives with `in`.
struct StreamKeys {
  std::array<uint8_t, 32> out = {};
  std::array<uint8_t, 32> in = {};
};

class SealedStream {
 public:
  explicit SealedStream(const StreamKeys& keys);
  ~SealedStream();
  SealedStream(const SealedStream&) = delete;
  SealedStream& operator=(const SealedStream&) = delete;

  // Like sendmsg() on a socket that doesn't block: returns how many bytes of `parts` the socket has
  // taken, or -1 with errno. After EAGAIN the caller has to give the same bytes again; more bytes
  // may follow them.
  ssize_t Send(int fd, std::span<const iovec> parts);
  // Like recv(): returns the number of bytes, 0 at the end of the connection, or -1 with errno.
  // EBADMSG: a record is not what the peer has sent, and everything that follows is refused.
  ssize_t Receive(int fd, void* into, size_t room);
  // Like Receive(), but leaves the bytes there. Returns fewer than have arrived only if `room` is
  // smaller or a record ends.
  ssize_t Peek(int fd, void* into, size_t room);

 private:
  // The most text in one record. Larger records would save nothing, because one fills a socket's
  // buffer a few times over.
  static constexpr size_t kMostText = 32 << 10;

  void Seal(std::span<const iovec> parts);
  // Sends the rest of the sealed record. Returns the length of its text when all of it is sent, or
  // -1 with errno.
  ssize_t Flush(int fd);
  // 1: a whole record has arrived; 0: the connection has ended; -1: an error, in errno.
  int AwaitRecord(int fd);
  // Makes decrypted text available; returns what AwaitRecord() returns.
  int Unpack(int fd);
  // Decrypts the record that AwaitRecord() has found. Returns the length of its text, or -1 with
  // errno.
  ssize_t Open(void* text);
  size_t RecordBytes() const;

  struct FreeCipher {
    void operator()(evp_cipher_ctx_st* cipher) const;
  };
  using Cipher = std::unique_ptr<evp_cipher_ctx_st, FreeCipher>;

  const Cipher sealing_, opening_;    // ciphers that have been given their keys
  uint64_t sent_ = 0, received_ = 0;  // records so far, and so the number of the next one

  std::vector<uint8_t> record_;  // being sent
  size_t record_sent_ = 0;       // bytes of it
  size_t record_text_ = 0;       // length of its text; 0: no record is being sent

  std::vector<uint8_t> arrived_;  // received bytes, still encrypted
  size_t begin_ = 0, end_ = 0;    // where the records that are not decrypted yet begin and end
  std::vector<uint8_t> text_;     // decrypted bytes that nobody has asked for yet
  size_t text_at_ = 0;
};

}  // namespace ringmaster::transport
