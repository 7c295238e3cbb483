// The first bytes of a connection, seen from each end: who dials and who listens prove to each
// other that they hold the ring's key, before either believes anything that the other says.
//
// A proof covers all that was said, both nonces, the address that was dialled and which end it
// comes from: it is worth nothing on another connection, at another listener, in another view or
// from the other side. It covers no byte that follows.
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
  // Over TCP the connection is encrypted if one of the two wants it; a unix socket's never is.
  DialerHandshake(Credentials credentials, Hello hello, uint32_t to, std::string where,
                  bool tcp = true);

  bool keyed() const { return credentials_.key.present(); }
  // Without a key the arena's descriptor goes with it.
  bool SendHello(int fd, int arena_fd);

  // kUnproven: whoever listens there doesn't hold the key. kProven: it does, and said `kind()`.
  enum class Result { kAgain, kClosed, kUnproven, kProven };
  Result ReadChallenge(int fd);
  ReplyKind kind() const { return challenge_.kind; }
  uint64_t epoch() const { return challenge_.epoch; }
  // We want encryption, and who listens there is too old for it.
  bool refuses_encryption() const;
  // Once the proof is sent: what follows the HelloReply is encrypted with these; none: it isn't.
  std::optional<StreamKeys> keys() const;
  bool SendProof(int fd, int arena_fd);

 private:
  Credentials credentials_;
  Hello hello_;
  KeyRequest request_;
  std::string where_;
  Challenge challenge_;
  size_t got_ = 0;
};

class ListenerHandshake {
 public:
  // What the listener says to a Hello.
  struct Verdict {
    ReplyKind kind = ReplyKind::kChallenge;  // kChallenge: welcome, if it proves the key
    uint64_t epoch = 0;
  };
  using Judge = std::function<Verdict(const Hello&)>;

  // `where`: the address of the listening socket, as peers know it.
  ListenerHandshake(Credentials credentials, std::string where, bool tcp = true)
      : credentials_(std::move(credentials)), where_(std::move(where)), tcp_(tcp) {}

  // kEnded: answered, or a stranger; to be closed. kDone: hello(), to() and the arena are good.
  enum class Result { kAgain, kEnded, kDone };
  Result Read(int fd, const Judge& judge, UniqueFd* arena);
  const Hello& hello() const { return hello_; }
  // Of a connection that is done; see DialerHandshake.
  std::optional<StreamKeys> keys() const;
  // kAnyRank without a key: it doesn't say.
  uint32_t wanted_rank() const { return credentials_.key.present() ? request_.to : kAnyRank; }

 private:
  Result OnHello(int fd, const Judge& judge);
  Result OnRequest(int fd, const Judge& judge);
  IoResult Receive(int fd, void* data, size_t bytes, UniqueFd* arena);

  Credentials credentials_;
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
