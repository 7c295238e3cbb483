#include "collectives/transport/handshake.h"

#include <cstddef>
#include <cstring>
#include <utility>

namespace ringmaster::transport {
namespace {

enum class End : char { kDialer = 'd', kListener = 'l' };

// The key of one direction of this connection. Only who holds the ring key can compute it. It is
// made as a proof is, but of a text that begins differently, so that no proof gives it away.
std::array<uint8_t, 32> StreamKey(const RingKey& key, const char* whose, const std::string& said) {
  return key.Prove(std::string("ringmaster stream of the ") + whose + said);
}

// Everything that both ends have said, which end speaks, and the address that was dialled.
std::string Transcript(End end, const Hello& hello, const KeyRequest& request,
                       const Challenge& challenge, const std::string& where) {
  std::string text = "ringmaster ring 2";
  const auto add = [&text](const auto& part) {
    text.append(reinterpret_cast<const char*>(&part), sizeof(part));
  };
  add(end);
  add(hello);
  add(request);
  add(challenge.kind);
  add(challenge.epoch);
  add(challenge.nonce);
  return text + where;
}

bool OfThisJob(const Hello& hello, const std::string& job) {
  char name[kJobBytes];
  CopyName(job, name);
  return std::memcmp(name, hello.job, kJobBytes) == 0;
}

void Reply(int fd, ReplyKind kind, uint64_t epoch) {
  HelloReply reply;
  reply.kind = kind;
  reply.epoch = epoch;
  (void)SendSmall(fd, &reply, sizeof(reply));
}

}  // namespace

DialerHandshake::DialerHandshake(RingCredentials credentials, Hello hello, uint32_t to,
                                 std::string where, bool tcp)
    : credentials_(std::move(credentials)), hello_(hello), where_(std::move(where)) {
  request_.encrypt = credentials_.encrypt && tcp && hello_.kind == HelloKind::kJoin ? 1 : 0;
  hello_.version = keyed() ? kKeyedWireVersion : kWireVersion;
  CopyName(credentials_.job, hello_.job);
  request_.to = to;
}

bool DialerHandshake::SendHello(int fd, int arena_fd) {
  if (!keyed()) return SendSmall(fd, &hello_, sizeof(hello_), arena_fd);
  request_.nonce = RandomNonce();
  struct {
    Hello hello;
    KeyRequest request;
  } both{hello_, request_};
  return SendSmall(fd, &both, sizeof(both));
}

DialerHandshake::Result DialerHandshake::ReadChallenge(int fd) {
  const IoResult io = RecvSmall(fd, &challenge_, sizeof(challenge_), &got_, nullptr);
  if (io == IoResult::kAgain) return Result::kAgain;
  // A listener without the key answers with a HelloReply, which is shorter.
  if (io == IoResult::kClosed) return got_ == 0 ? Result::kClosed : Result::kUnproven;
  const bool proven =
      challenge_.magic == kMagic &&
      credentials_.key.Proves(challenge_.proof,
                              Transcript(End::kListener, hello_, request_, challenge_, where_));
  return proven ? Result::kProven : Result::kUnproven;
}

std::optional<uint64_t> DialerHandshake::other_version() const {
  static_assert(offsetof(HelloReply, kind) == offsetof(Challenge, kind) &&
                offsetof(HelloReply, epoch) == offsetof(Challenge, epoch));
  const bool told = got_ == sizeof(HelloReply) && challenge_.magic == kMagic &&
                    challenge_.kind == ReplyKind::kWrongVersion;
  if (!told || challenge_.epoch == kWireVersion) return {};
  return challenge_.epoch;
}

bool DialerHandshake::SendProof(int fd, int arena_fd) {
  const Proof proof =
      credentials_.key.Prove(Transcript(End::kDialer, hello_, request_, challenge_, where_));
  return SendSmall(fd, proof.data(), proof.size(), arena_fd);
}

bool DialerHandshake::refuses_encryption() const {
  return request_.encrypt != 0 && challenge_.kind == ReplyKind::kChallenge;
}

std::optional<StreamKeys> DialerHandshake::keys() const {
  if (challenge_.kind != ReplyKind::kChallengeToEncrypt) return {};
  const std::string said = Transcript(End::kDialer, hello_, request_, challenge_, where_);
  return StreamKeys{StreamKey(credentials_.key, "dialer", said),
                    StreamKey(credentials_.key, "listener", said)};
}

std::optional<StreamKeys> ListenerHandshake::keys() const {
  if (challenge_.kind != ReplyKind::kChallengeToEncrypt) return {};
  const std::string said = Transcript(End::kDialer, hello_, request_, challenge_, where_);
  return StreamKeys{StreamKey(credentials_.key, "listener", said),
                    StreamKey(credentials_.key, "dialer", said)};
}

IoResult ListenerHandshake::Receive(int fd, void* data, size_t bytes, UniqueFd* arena) {
  const IoResult io = RecvSmall(fd, data, bytes, &got_, arena);
  if (io == IoResult::kDone) got_ = 0;
  return io;
}

ListenerHandshake::Result ListenerHandshake::Read(int fd, const Answerer& answerer,
                                                  UniqueFd* arena) {
  while (true) {
    IoResult io = IoResult::kClosed;
    switch (stage_) {
      case Stage::kHello:
        io = Receive(fd, &hello_, sizeof(hello_), arena);
        // A stranger is refused by its first bytes, and the rest isn't waited for.
        if (io == IoResult::kAgain && got_ >= sizeof(uint32_t) && hello_.magic != kMagic) {
          return Result::kEnded;
        }
        break;
      case Stage::kRequest:
        io = Receive(fd, &request_, sizeof(request_), arena);
        break;
      case Stage::kProof:
        io = Receive(fd, proof_.data(), proof_.size(), arena);
        break;
    }
    if (io == IoResult::kAgain) return Result::kAgain;
    if (io == IoResult::kClosed) return Result::kEnded;
    if (stage_ == Stage::kProof) {
      const bool proven = credentials_.key.Proves(
          proof_, Transcript(End::kDialer, hello_, request_, challenge_, where_));
      return proven ? Result::kDone : Result::kEnded;
    }
    const Result result = stage_ == Stage::kHello ? OnHello(fd, answerer) : OnRequest(fd, answerer);
    if (result != Result::kAgain) return result;
  }
}

// kAgain: the handshake goes on with its next stage.
ListenerHandshake::Result ListenerHandshake::OnHello(int fd, const Answerer& answerer) {
  if (hello_.magic != kMagic) return Result::kEnded;
  if (credentials_.key.present()) {
    if (hello_.version == kWireVersion) {
      Reply(fd, ReplyKind::kNoProof, 0);
      return Result::kEnded;
    }
    if (hello_.version != kKeyedWireVersion) {
      Reply(fd, ReplyKind::kWrongVersion, kKeyedWireVersion);
      return Result::kEnded;
    }
    stage_ = Stage::kRequest;
    return Result::kAgain;
  }
  if (hello_.version != kWireVersion) {
    Reply(fd, ReplyKind::kWrongVersion, kWireVersion);
    return Result::kEnded;
  }
  const Answer answer =
      OfThisJob(hello_, credentials_.job) ? answerer(hello_) : Answer{ReplyKind::kWrongJob, 0};
  if (answer.kind == ReplyKind::kChallenge) return Result::kDone;
  Reply(fd, answer.kind, answer.epoch);
  return Result::kEnded;
}

ListenerHandshake::Result ListenerHandshake::OnRequest(int fd, const Answerer& answerer) {
  const Answer answer =
      OfThisJob(hello_, credentials_.job) ? answerer(hello_) : Answer{ReplyKind::kWrongJob, 0};
  challenge_.kind = answer.kind;
  const bool wanted = request_.encrypt != 0 || credentials_.encrypt;
  if (answer.kind == ReplyKind::kChallenge && tcp_ && wanted) {
    challenge_.kind = ReplyKind::kChallengeToEncrypt;
  }
  challenge_.epoch = answer.epoch;
  challenge_.nonce = RandomNonce();
  challenge_.proof =
      credentials_.key.Prove(Transcript(End::kListener, hello_, request_, challenge_, where_));
  if (!SendSmall(fd, &challenge_, sizeof(challenge_))) return Result::kEnded;
  stage_ = Stage::kProof;
  return answer.kind == ReplyKind::kChallenge ? Result::kAgain : Result::kEnded;
}

}  // namespace ringmaster::transport
