// The first bytes of a connection, seen from each end: the dialer and the listener prove to each
// other that they hold the ring key before either believes anything that the other says.
//
// A proof covers everything that both ends have said, both nonces, the address that was dialled and
// which end makes it. So it is worth nothing on another connection, at another listener, in another
// view or from the other end. It covers no byte that follows.
//
// Thread rule: the thread that owns the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "collectives/transport/ring_key.h"
#include "collectives/transport/sealed_stream.h"
#include "collectives/transport/socket.h"
#include "collectives/transport/unique_fd.h"
#include "collectives/transport/wire.h"

namespace ringmaster::transport {

class DialerHandshake {
 public:
  // `to`: the rank that is dialled. `where`: its address, as it was dialled.
  // Over TCP the connection is encrypted if either end wants it; over a unix socket it never is.
  DialerHandshake(RingCredentials credentials, Hello hello, uint32_t to, std::string where,
                  bool tcp = true);

  bool keyed() const { return credentials_.key.present(); }
  // Without a key the arena's descriptor is sent with the Hello; otherwise SendProof() sends it.
  bool SendHello(int fd, int arena_fd);

  // kUnproven: the listener doesn't hold the key. kProven: it does, and its answer is kind().
  enum class Result { kAgain, kClosed, kUnproven, kProven };
  Result ReadChallenge(int fd);
  // After kUnproven: the version that the listener says it speaks instead of ours, for the error's
  // text. Anybody could say so. No value: it says none, or that of listeners without a key.
  std::optional<uint64_t> other_version() const;
  ReplyKind kind() const { return challenge_.kind; }
  uint64_t epoch() const { return challenge_.epoch; }
  // This process wants encryption, and the listener's version is too old for it.
  bool refuses_encryption() const;
  // Valid after kProven: the keys with which everything after the HelloReply is encrypted. No
  // value: the connection is not encrypted.
  std::optional<StreamKeys> keys() const;
  bool SendProof(int fd, int arena_fd);

 private:
  RingCredentials credentials_;
  Hello hello_;
  KeyRequest request_;
  std::string where_;
  Challenge challenge_;
  size_t got_ = 0;
};

class ListenerHandshake {
 public:
  // What the listener says to a Hello.
  struct Answer {
    // kChallenge: the dialer is welcome, if it proves the key.
    ReplyKind kind = ReplyKind::kChallenge;
    uint64_t epoch = 0;
  };
  using Answerer = std::function<Answer(const Hello&)>;

  // `where`: the address of the listening socket, as peers know it.
  ListenerHandshake(RingCredentials credentials, std::string where, bool tcp = true)
      : credentials_(std::move(credentials)), where_(std::move(where)), tcp_(tcp) {}

  // kEnded: the dialer was answered or is a stranger, and the connection has to be closed. kDone:
  // the dialer has proven the key; hello(), wanted_rank() and the arena can be used.
  enum class Result { kAgain, kEnded, kDone };
  Result Read(int fd, const Answerer& answerer, UniqueFd* arena);
  const Hello& hello() const { return hello_; }
  // Valid after kDone; see DialerHandshake.
  std::optional<StreamKeys> keys() const;
  // The rank that the dialer wants to reach. Without a key it is kAnyRank, because then the dialer
  // doesn't say it.
  uint32_t wanted_rank() const { return credentials_.key.present() ? request_.to : kAnyRank; }

 private:
  Result OnHello(int fd, const Answerer& answerer);
  Result OnRequest(int fd, const Answerer& answerer);
  IoResult Receive(int fd, void* data, size_t bytes, UniqueFd* arena);

  RingCredentials credentials_;
  std::string where_;
  bool tcp_;
  enum class Stage { kHello, kRequest, kProof } stage_ = Stage::kHello;
  size_t got_ = 0;  // of this stage
  Hello hello_;
  KeyRequest request_;
  Challenge challenge_;
  Proof proof_ = {};
};

}  // namespace ringmaster::transport
