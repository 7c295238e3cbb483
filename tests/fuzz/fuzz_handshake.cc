// What comes first on a connection of the ring, at the listener and at the dialer, in pieces as a
// socket brings them. Bytes alone prove no key: nobody gets in where there is one.
#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "collectives/transport/handshake.h"

using namespace ringmaster::transport;

namespace {

struct Pair {
  UniqueFd ours, theirs;
  Pair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    ours = UniqueFd(fds[0]);
    theirs = UniqueFd(fds[1]);
  }
};

Credentials CredentialsOf(bool keyed) {
  Credentials credentials{"job", {}};
  const std::string key(keyed ? RingKey::kBytes : 0, 'k');
  if (!RingKey::Create(key, &credentials.key).ok()) std::abort();
  return credentials;
}

// `read` looks at what has come; false: it wants no more.
template <class Read>
void Say(const Pair& pair, std::string_view bytes, std::size_t piece, const Read& read) {
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::string_view part = bytes.substr(at, piece);
    if (send(pair.theirs.get(), part.data(), part.size(), MSG_NOSIGNAL) < 0) return;
    if (!read()) return;
  }
  shutdown(pair.theirs.get(), SHUT_WR);
  if (read()) std::abort();  // the other end is closed: there is nothing to wait for
}

void Listen(bool keyed, ReplyKind answer, std::string_view bytes, std::size_t piece) {
  const Pair pair;
  ListenerHandshake handshake(CredentialsOf(keyed), "127.0.0.1:1");
  const auto answerer = [answer](const Hello&) { return ListenerHandshake::Answer{answer, 7}; };
  Say(pair, bytes, piece, [&] {
    UniqueFd arena;
    const auto result = handshake.Read(pair.ours.get(), answerer, &arena);
    if (keyed && result == ListenerHandshake::Result::kDone) std::abort();
    return result == ListenerHandshake::Result::kAgain;
  });
}

void Dial(bool keyed, std::string_view bytes, std::size_t piece) {
  const Pair pair;
  DialerHandshake handshake(CredentialsOf(keyed), Hello{}, 1, "127.0.0.1:1");
  if (!handshake.SendHello(pair.ours.get(), -1)) std::abort();
  Say(pair, bytes, piece, [&] {
    const auto result = handshake.ReadChallenge(pair.ours.get());
    if (result == DialerHandshake::Result::kProven) std::abort();
    return result == DialerHandshake::Result::kAgain;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool keyed = (data[0] & 1) != 0;
  const std::size_t piece = data[1] % 128u + 1;
  if ((data[0] & 2) != 0) {
    Dial(keyed, bytes, piece);
  } else {
    Listen(keyed, static_cast<ReplyKind>(data[0] >> 2 & 15), bytes, piece);
  }
  return 0;
}
