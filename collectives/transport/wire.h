// What two processes send each other over a connection of the ring, byte for byte (little-endian,
// same machine type).
//
// A connection belongs to one pair of ranks in one view. If the job has a ring key:
//
//   who dials                     who listens
//   Hello, KeyRequest      ->
//                          <-     Challenge, with a proof; a `kind` other than kChallenge and
//                                 kChallengeToEncrypt ends it here
//   proof, own arena       ->
//                          <-     HelloReply, own arena: when the view is built there, too
//
// A proven connection over TCP is encrypted from there on (sealed_stream.h) if either end wants it.
//
// Without a key: Hello with the arena, then HelloReply. The listener's thread answers all but the
// last message, the HelloReply of kJoined or kUseTcp: that comes from the thread that builds the
// view. Then follow frames, each a FrameHeader and its payload. A probe asks only whether the
// process lives.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "collectives/transport/ring_key.h"

namespace ringmaster::transport {

static_assert(std::endian::native == std::endian::little, "the wire format is little-endian");

inline constexpr uint32_t kMagic = 0x31474d52;    // "RMG1"
inline constexpr uint32_t kWireVersion = 1;       // without a key
inline constexpr uint32_t kKeyedWireVersion = 2;  // both ends prove that they hold the key
inline constexpr size_t kJobBytes = 64;

enum class HelloKind : uint32_t { kJoin = 1, kProbe = 2 };

struct Hello {
  uint32_t magic = kMagic;
  uint32_t version = kWireVersion;
  HelloKind kind = HelloKind::kJoin;
  uint32_t rank = 0;
  uint64_t epoch = 0;
  uint64_t arena_id = 0;     // 0: no arena
  uint64_t arena_bytes = 0;  // size of the mapping
  char job[kJobBytes] = {};
};

enum class ReplyKind : uint32_t {
  kJoined = 1,    // the connection is made
  kUseTcp = 2,    // the peer doesn't share memory in this view: dial its TCP listener
  kMovedOn = 3,   // stale epoch; `epoch` is the newer one
  kWrongJob = 4,  // the listener belongs to another job
  kWrongVersion = 5,
  kAlive = 6,               // answer to a probe; views up to `epoch` are over there
  kNoProof = 7,             // this listener has the ring key and asks for a proof
  kChallenge = 8,           // the listener waits for the dialer's proof
  kChallengeToEncrypt = 9,  // the same, and what follows the HelloReply is encrypted
};

inline constexpr uint32_t kAnyRank = UINT32_MAX;
// Follows a Hello of kKeyedWireVersion.
struct KeyRequest {
  uint32_t to = 0;       // the rank that the dialer wants to reach
  uint32_t encrypt = 0;  // 1: the dialer wants what follows the HelloReply encrypted
  Nonce nonce = {};
};

struct Challenge {
  uint32_t magic = kMagic;
  ReplyKind kind = ReplyKind::kChallenge;
  uint64_t epoch = 0;
  Nonce nonce = {};
  Proof proof = {};
};
static_assert(sizeof(KeyRequest) == 40 && sizeof(Challenge) == 80 && sizeof(Hello) == 104);

struct HelloReply {
  uint32_t magic = kMagic;
  ReplyKind kind = ReplyKind::kJoined;
  uint64_t epoch = 0;
  uint64_t arena_id = 0;
  uint64_t arena_bytes = 0;
};

enum class FrameKind : uint32_t { kData = 1, kBye = 2, kGroups = 3 };

struct FrameHeader {
  uint32_t magic = kMagic;
  FrameKind kind = FrameKind::kData;
  uint64_t epoch = 0;
  uint64_t op = 0;     // number of the collective in its view
  uint64_t bytes = 0;  // of payload
};
static_assert(sizeof(FrameHeader) == 32);

template <size_t N>
void CopyName(const std::string& text, char (&out)[N]) {
  std::memset(out, 0, N);
  std::memcpy(out, text.data(), std::min(text.size(), N - 1));
}

}  // namespace ringmaster::transport
