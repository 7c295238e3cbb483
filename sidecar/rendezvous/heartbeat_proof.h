// What goes over a heartbeat connection, and what proves that both ends hold the job's ring key.
//
// The watching sidecar sends a line, then beats; the watched one answers the line with its own,
// then every beat with an echo. Where both have the key each line has a nonce, so what is proven on
// one connection is worth nothing on another; and a beat's and an echo's proof covers how many have
// gone before it, so none can be repeated, left out or moved. A version before there were proofs
// reads no further than it knows, and leaves nonce and proof out of its own line.
//
// Pure. Thread rule: values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::rendezvous {

struct HeartbeatNews {
  uint64_t epoch = 0;  // the newest that the sender knows
  uint64_t step = 0;   // completed by its workers

  bool operator==(const HeartbeatNews&) const = default;
};

// Both lines are shorter than this.
inline constexpr size_t kMaxHeartbeatLine = 512;

// The line of the watching sidecar.
struct HeartbeatHello {
  std::string job, watcher;  // uids
  std::string nonce;         // empty: asks for no proof
};
std::string WriteHello(const HeartbeatHello& hello);
std::optional<HeartbeatHello> ReadHello(const std::string& line);

// The line of the watched sidecar.
struct HeartbeatWelcome {
  std::string watched;       // uid
  std::string nonce, proof;  // empty: none
};
std::string WriteWelcome(const HeartbeatWelcome& welcome);
std::optional<HeartbeatWelcome> ReadWelcome(const std::string& line);

// Hexadecimal, new each time.
std::string MakeHeartbeatNonce();

// What the two ends of one connection have agreed on.
class HeartbeatSession {
 public:
  HeartbeatSession() = default;  // nothing is proven
  // `key`: the job's ring key. The uids and nonces of the two lines.
  HeartbeatSession(std::string_view key, const HeartbeatHello& hello, const std::string& watched,
                   const std::string& watched_nonce);

  bool proven() const { return !key_.empty(); }
  // Of the watched sidecar, for its line; empty where nothing is proven.
  std::string Proof() const;
  bool IsProof(const std::string& claimed) const;

  // What a beat is as long as, and an echo too.
  size_t size() const;
  // `number`: how many went before it on this connection, in this direction.
  std::string Beat(uint64_t number) const;
  bool IsBeat(uint64_t number, std::string_view bytes) const;
  std::string Echo(uint64_t number, const HeartbeatNews& news) const;
  // Empty: it is not that echo.
  std::optional<HeartbeatNews> ReadEcho(uint64_t number, std::string_view bytes) const;

 private:
  std::string Signed(std::string_view purpose, uint64_t number, std::string text) const;
  bool IsSigned(std::string_view purpose, uint64_t number, std::string_view bytes) const;

  std::string key_;  // of this connection; empty: nothing is proven
};

}  // namespace ringmaster::rendezvous
