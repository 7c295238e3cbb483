// What comes first on a connection of the ring, in pieces as a socket brings it.
//
// The first byte has bits: 1: there is a key; 2: the bytes come to the dialer, else to the
// listener; 4 to 32: what the listener answers to a Hello (ReplyKind); 64: they come to neither,
// but a dialer and a listener talk, and the bytes change what they say (exclusive or, in the order
// in which it is sent); 128: the listener wants encryption. The second byte is the length of the
// pieces less 1; 128: two descriptors come with the first piece. In a talk a third byte follows
// (Talk).
//
// Bytes alone prove no key: nobody gets in where there is one, nor does who changes a byte.
#include <dirent.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "collectives/transport/handshake.h"
#include "tests/support/send_descriptors.h"

using namespace ringmaster::transport;

namespace {

constexpr char kWhere[] = "127.0.0.1:1";

// Ends the fuzzer: what always holds does not.
void Demand(bool holds) {
  if (!holds) std::abort();
}

struct Pair {
  UniqueFd ours, theirs;
  Pair() {
    int fds[2];
    Demand(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    ours = UniqueFd(fds[0]);
    theirs = UniqueFd(fds[1]);
  }
};

RingCredentials CredentialsOf(bool keyed, bool encrypt = false, char key = 'k') {
  RingCredentials credentials{"job", {}, encrypt};
  const std::string bytes(keyed ? RingKey::kBytes : 0, key);
  Demand(RingKey::Create(bytes, &credentials.key).ok());
  return credentials;
}

int OpenDescriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  Demand(folder != nullptr);
  int open = 0;
  while (readdir(folder.get()) != nullptr) ++open;
  return open;
}

struct Pieces {
  explicit Pieces(std::uint8_t byte) : bytes(byte % 128u + 1), descriptors(byte >= 128) {}
  std::size_t bytes;
  bool descriptors;
};

// `read` looks at what has come; false: it wants no more.
template <class Read>
void Say(const Pair& pair, std::string_view bytes, const Pieces& pieces, const Read& read) {
  const int fd = pair.theirs.get(), two[] = {fd, fd};
  for (std::size_t at = 0; at < bytes.size(); at += pieces.bytes) {
    const std::string_view part = bytes.substr(at, pieces.bytes);
    const bool sent = pieces.descriptors && at == 0
                          ? ringmaster::support::SendWithDescriptors(fd, part, two)
                          : send(fd, part.data(), part.size(), MSG_NOSIGNAL) >= 0;
    if (!sent || !read()) return;
  }
  shutdown(fd, SHUT_WR);
  Demand(!read());  // the other end is closed: there is nothing to wait for
}

void Listen(const RingCredentials& credentials, ReplyKind answer, std::string_view bytes,
            const Pieces& pieces) {
  const Pair pair;
  ListenerHandshake handshake(credentials, kWhere);
  const auto answerer = [answer](const Hello&) { return ListenerHandshake::Answer{answer, 7}; };
  Say(pair, bytes, pieces, [&] {
    UniqueFd arena;
    const auto result = handshake.Read(pair.ours.get(), answerer, &arena);
    const bool done = result == ListenerHandshake::Result::kDone;
    Demand(!done || !credentials.key.present());
    if (done) Demand(!handshake.keys() && handshake.wanted_rank() == kAnyRank);
    return result == ListenerHandshake::Result::kAgain;
  });
}

void Dial(const RingCredentials& credentials, std::string_view bytes, const Pieces& pieces) {
  const Pair pair;
  DialerHandshake handshake(credentials, Hello{}, 1, kWhere);
  Demand(handshake.SendHello(pair.ours.get(), -1));
  Say(pair, bytes, pieces, [&] {
    const auto result = handshake.ReadChallenge(pair.ours.get());
    Demand(result != DialerHandshake::Result::kProven);
    return result == DialerHandshake::Result::kAgain;
  });
}

// A dialer and a listener, and what the bytes do to what they say.
class Talk {
 public:
  Talk(std::uint8_t first, std::uint8_t bits, std::string_view changes)
      : changes_(changes),
        answer_(static_cast<ReplyKind>(first >> 2 & 15)),
        keyed_((first & 1) != 0),
        same_key_((bits & 1) == 0),
        tcp_((bits & 4) == 0),
        probe_((bits & 8) != 0),
        arena_((bits & 16) != 0),
        same_place_((bits & 32) == 0),
        of_dialer_(CredentialsOf((bits & 64) == 0, (bits & 2) != 0, same_key_ ? 'k' : 'x')),
        of_listener_(CredentialsOf(keyed_, first >= 128)) {}

  void Run() {
    Hello hello;
    hello.kind = probe_ ? HelloKind::kProbe : HelloKind::kJoin;
    DialerHandshake dialer(of_dialer_, hello, 3, kWhere, tcp_);
    ListenerHandshake listener(of_listener_, same_place_ ? kWhere : "127.0.0.1:2", tcp_);
    const int arena_fd = arena_ ? dialer_.ours.get() : -1;
    Demand(dialer.SendHello(dialer_.ours.get(), arena_fd));
    auto heard = Pass(dialer_, listener_, &listener);
    if (!keyed_) return CheckUnkeyed(dialer, heard);
    Demand(heard != ListenerHandshake::Result::kDone);
    PassBack();
    const auto result = dialer.ReadChallenge(dialer_.ours.get());
    const bool proven = result == DialerHandshake::Result::kProven;
    Demand(proven == (Believable() && !changed_));
    if (!proven) return;
    Demand(dialer.refuses_encryption() ==
           (WantsEncryption() && dialer.kind() == ReplyKind::kChallenge));
    if (answer_ != ReplyKind::kChallenge) return Demand(dialer.kind() == answer_);
    Demand(dialer.SendProof(dialer_.ours.get(), arena_fd));
    heard = Pass(dialer_, listener_, &listener);
    Demand((heard == ListenerHandshake::Result::kDone) == !changed_);
    if (!changed_) CheckDone(dialer, listener);
  }

 private:
  bool Believable() const { return of_dialer_.key.present() && same_key_ && same_place_; }
  bool WantsEncryption() const { return of_dialer_.encrypt && tcp_ && !probe_; }

  // What one end has sent, changed.
  std::string Changed(const Pair& from) {
    char buffer[512];
    const ssize_t n = recv(from.theirs.get(), buffer, sizeof buffer, 0);
    std::string text(buffer, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    for (char& byte : text) {
      if (changes_.empty()) break;
      byte = static_cast<char>(byte ^ changes_.front());
      changed_ |= changes_.front() != 0;
      changes_.remove_prefix(1);
    }
    return text;
  }

  ListenerHandshake::Result Pass(const Pair& from, const Pair& to, ListenerHandshake* listener) {
    const std::string text = Changed(from);
    Demand(SendSmall(to.theirs.get(), text.data(), text.size(), arena_ ? to.ours.get() : -1));
    UniqueFd arena;
    return listener->Read(
        to.ours.get(),
        [this](const Hello&) {
          return ListenerHandshake::Answer{answer_, 7};
        },
        &arena);
  }
  // The listener has answered or ended the connection: the dialer hears no more than that.
  void PassBack() {
    const std::string text = Changed(listener_);
    if (!text.empty()) Demand(SendSmall(dialer_.theirs.get(), text.data(), text.size()));
    shutdown(dialer_.theirs.get(), SHUT_WR);
  }

  void CheckUnkeyed(DialerHandshake& dialer, ListenerHandshake::Result heard) {
    if (of_dialer_.key.present()) {
      if (!changed_) Demand(heard == ListenerHandshake::Result::kEnded);
      PassBack();
      return Demand(dialer.ReadChallenge(dialer_.ours.get()) != DialerHandshake::Result::kProven);
    }
    const bool welcome = answer_ == ReplyKind::kChallenge;
    if (!changed_) Demand((heard == ListenerHandshake::Result::kDone) == welcome);
  }

  void CheckDone(const DialerHandshake& dialer, const ListenerHandshake& listener) const {
    Demand(listener.wanted_rank() == 3);
    const auto ours = dialer.keys(), theirs = listener.keys();
    const bool wanted = tcp_ && (WantsEncryption() || of_listener_.encrypt);
    Demand(ours.has_value() == wanted && theirs.has_value() == wanted);
    if (wanted) Demand(ours->out == theirs->in && ours->in == theirs->out && ours->in != ours->out);
  }

  std::string_view changes_;
  bool changed_ = false;
  const ReplyKind answer_;
  // Bits of the third byte: 1: the dialer has another key; 2: it wants encryption; 4: not over TCP;
  // 8: it only probes; 16: descriptors come with what it says; 32: it has dialled another address;
  // 64: it has no key.
  const bool keyed_, same_key_, tcp_, probe_, arena_, same_place_;
  const RingCredentials of_dialer_, of_listener_;
  const Pair dialer_, listener_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto credentials = CredentialsOf((data[0] & 1) != 0, (data[0] & 128) != 0);
  const Pieces pieces(data[1]);
  const int open = OpenDescriptors();
  if ((data[0] & 64) != 0) {
    Talk(data[0], data[2], bytes.substr(1)).Run();
  } else if ((data[0] & 2) != 0) {
    Dial(credentials, bytes, pieces);
  } else {
    Listen(credentials, static_cast<ReplyKind>(data[0] >> 2 & 15), bytes, pieces);
  }
  Demand(OpenDescriptors() == open);
  return 0;
}
