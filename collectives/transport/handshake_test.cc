#include "collectives/transport/handshake.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/transport/endpoint.h"
#include "collectives/transport/probe.h"

namespace ringmaster::transport {
namespace {

constexpr uint64_t kEpoch = uint64_t{1} << 40 | 7;
constexpr std::chrono::seconds kLimit{10};
const std::string kKey(RingKey::kBytes, 'k'), kOtherKey(RingKey::kBytes, 'o');

RingCredentials CredentialsOf(const std::string& key, bool encrypt = false) {
  RingCredentials credentials{"job", {}, encrypt};
  EXPECT_TRUE(RingKey::Create(key, &credentials.key).ok());
  return credentials;
}

std::unique_ptr<EndpointImpl> EndpointWith(const std::string& key, bool encrypt = false) {
  std::unique_ptr<EndpointImpl> endpoint;
  Status status = EndpointImpl::Create({.job = "job", .key = key, .encrypt = encrypt}, &endpoint);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(endpoint->listener().Begin(kEpoch).ok());
  return endpoint;
}

Hello HelloOf(uint64_t epoch, uint32_t rank = 1) {
  Hello hello;
  hello.epoch = epoch;
  hello.rank = rank;
  CopyName("job", hello.job);
  return hello;
}

// Any process that dials, member or not.
class Caller {
 public:
  explicit Caller(const std::string& address) : address_(address) {
    DialResult result;
    EXPECT_TRUE(DialTcp(address, &fd_, &result).ok());
    EXPECT_TRUE(WaitFor(fd_.get(), POLLOUT, Clock::now() + kLimit));
  }

  int fd() const { return fd_.get(); }

  void Send(const void* data, size_t bytes) { EXPECT_TRUE(SendSmall(fd(), data, bytes)); }

  // Sends the Hello and waits for the challenge.
  DialerHandshake::Result Ask(DialerHandshake* handshake) {
    EXPECT_TRUE(handshake->SendHello(fd(), -1));
    while (WaitFor(fd(), POLLIN, Clock::now() + kLimit)) {
      const auto result = handshake->ReadChallenge(fd());
      if (result != DialerHandshake::Result::kAgain) return result;
    }
    return DialerHandshake::Result::kAgain;
  }

  // Goes through the handshake as a member does.
  void Join(const std::string& key, const Hello& hello, uint32_t to = 0) {
    DialerHandshake handshake(CredentialsOf(key), hello, to, address_);
    ASSERT_EQ(Ask(&handshake), DialerHandshake::Result::kProven);
    ASSERT_EQ(handshake.kind(), ReplyKind::kChallenge);
    ASSERT_TRUE(handshake.SendProof(fd(), -1));
  }

  // Returns what comes until the other end closes; no value if it doesn't close.
  std::optional<std::string> UntilClosed() {
    std::string text;
    while (WaitFor(fd(), POLLIN, Clock::now() + kLimit)) {
      char byte;
      size_t got = 0;
      if (RecvSmall(fd(), &byte, 1, &got, nullptr) == IoResult::kClosed) return text;
      text.append(&byte, got);
    }
    return std::nullopt;
  }

 private:
  std::string address_;
  UniqueFd fd_;
};

std::vector<Arrival> TakeNext(EndpointImpl& endpoint, uint64_t epoch = kEpoch) {
  pollfd entry{endpoint.listener().event(), POLLIN, 0};
  EXPECT_EQ(poll(&entry, 1, 10000), 1);
  return endpoint.listener().Take(epoch);
}

// After a stranger was refused, a member still gets in, and is the only one that did.
void ExpectOnlyAMemberComes(EndpointImpl& endpoint) {
  Caller member(endpoint.Address().tcp);
  member.Join(kKey, HelloOf(kEpoch, 3));
  const auto arrivals = TakeNext(endpoint);
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_EQ(arrivals[0].hello.rank, 3u);
  EXPECT_EQ(endpoint.listener().Newest(), kEpoch);
}

TEST(RingKey, HasItsLengthOrIsNone) {
  RingKey key;
  EXPECT_FALSE(RingKey::Create("short", &key).ok());
  EXPECT_TRUE(RingKey::Create("", &key).ok());
  EXPECT_FALSE(key.present());
  EXPECT_FALSE(key.Proves(key.Prove("text"), "text")) << "no key proves nothing";
  EXPECT_TRUE(RingKey::Create(kKey, &key).ok());
  EXPECT_TRUE(key.Proves(key.Prove("text"), "text"));
  EXPECT_FALSE(key.Proves(key.Prove("text"), "other text"));
}

TEST(Handshake, AMemberIsParkedWithTheRankItWants) {
  auto endpoint = EndpointWith(kKey);
  Caller member(endpoint->Address().tcp);
  member.Join(kKey, HelloOf(kEpoch, 5), 2);
  const auto arrivals = TakeNext(*endpoint);
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_EQ(arrivals[0].hello.rank, 5u);
  EXPECT_EQ(arrivals[0].wanted_rank, 2u);
}

TEST(Handshake, WithoutAKeyNothingIsProvenAndNothingAsked) {
  auto endpoint = EndpointWith("");
  Caller member(endpoint->Address().tcp);
  DialerHandshake handshake(CredentialsOf(""), HelloOf(kEpoch), 0, endpoint->Address().tcp);
  ASSERT_TRUE(handshake.SendHello(member.fd(), -1));
  EXPECT_EQ(TakeNext(*endpoint).size(), 1u);
}

TEST(Handshake, AStrangersHelloWithTheRightJobAndEpochIsRefused) {
  auto endpoint = EndpointWith(kKey);
  Caller stranger(endpoint->Address().tcp);
  const Hello hello = HelloOf(kEpoch);
  stranger.Send(&hello, sizeof(hello));
  const auto answer = stranger.UntilClosed();
  ASSERT_TRUE(answer.has_value());
  ASSERT_EQ(answer->size(), sizeof(HelloReply));
  HelloReply reply;
  std::memcpy(&reply, answer->data(), sizeof(reply));
  EXPECT_EQ(reply.kind, ReplyKind::kNoProof);
  ExpectOnlyAMemberComes(*endpoint);
}

// What a later version of the library would meet, and what this one says of it.
TEST(Handshake, AnotherVersionOfTheProtocolIsTold) {
  auto endpoint = EndpointWith(kKey);
  Caller later(endpoint->Address().tcp);
  Hello hello = HelloOf(kEpoch);
  hello.version = kKeyedWireVersion + 1;
  later.Send(&hello, sizeof(hello));
  const auto answer = later.UntilClosed();
  ASSERT_TRUE(answer.has_value());
  ASSERT_EQ(answer->size(), sizeof(HelloReply));
  HelloReply reply;
  std::memcpy(&reply, answer->data(), sizeof(reply));
  EXPECT_EQ(reply.kind, ReplyKind::kWrongVersion);
  EXPECT_EQ(reply.epoch, kKeyedWireVersion);

  for (const uint32_t said : {kKeyedWireVersion + 1, kWireVersion}) {
    DialerHandshake handshake(CredentialsOf(kKey), HelloOf(kEpoch), 0, "somewhere");
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    const UniqueFd dialer(pair[0]);
    UniqueFd listener(pair[1]);
    ASSERT_TRUE(handshake.SendHello(dialer.get(), -1));
    char heard[sizeof(Hello) + sizeof(KeyRequest)];
    ASSERT_EQ(read(listener.get(), heard, sizeof(heard)), static_cast<ssize_t>(sizeof(heard)));
    HelloReply refusal;
    refusal.kind = ReplyKind::kWrongVersion;
    refusal.epoch = said;
    ASSERT_EQ(write(listener.get(), &refusal, sizeof(refusal)),
              static_cast<ssize_t>(sizeof(refusal)));
    listener = UniqueFd();
    EXPECT_EQ(handshake.ReadChallenge(dialer.get()), DialerHandshake::Result::kUnproven);
    const auto other = handshake.other_version();
    EXPECT_EQ(other.has_value(), said != kWireVersion);
    if (other) EXPECT_EQ(*other, said);
  }
}

TEST(Handshake, AWrongKeyIsSeenByBothEnds) {
  auto endpoint = EndpointWith(kKey);
  Caller stranger(endpoint->Address().tcp);
  DialerHandshake handshake(CredentialsOf(kOtherKey), HelloOf(kEpoch), 0, endpoint->Address().tcp);
  EXPECT_EQ(stranger.Ask(&handshake), DialerHandshake::Result::kUnproven);
  ASSERT_TRUE(handshake.SendProof(stranger.fd(), -1));
  EXPECT_EQ(stranger.UntilClosed(), "");
  ExpectOnlyAMemberComes(*endpoint);
}

TEST(Handshake, AMemberWithoutTheKeyAndOneWithItDoNotMeet) {
  auto endpoint = EndpointWith("");
  Caller member(endpoint->Address().tcp);
  DialerHandshake handshake(CredentialsOf(kKey), HelloOf(kEpoch), 0, endpoint->Address().tcp);
  EXPECT_EQ(member.Ask(&handshake), DialerHandshake::Result::kUnproven);
}

// Passes on bytes that one end has sent to the other, and returns them.
std::string Pass(int from, int to, size_t bytes) {
  std::string text(bytes, '\0');
  size_t got = 0;
  IoResult io = IoResult::kAgain;
  while (io == IoResult::kAgain && WaitFor(from, POLLIN, Clock::now() + kLimit)) {
    io = RecvSmall(from, text.data(), bytes, &got, nullptr);
  }
  EXPECT_EQ(io, IoResult::kDone);
  EXPECT_TRUE(SendSmall(to, text.data(), bytes));
  return text;
}

TEST(Handshake, AReplayedOneIsRefused) {
  auto endpoint = EndpointWith(kKey);
  const std::string address = endpoint->Address().tcp;
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const UniqueFd member(fds[0]), wire(fds[1]);
  Caller recorded(address), replaying(address);
  DialerHandshake handshake(CredentialsOf(kKey), HelloOf(kEpoch), 0, address);
  ASSERT_TRUE(handshake.SendHello(member.get(), -1));
  const std::string hello = Pass(wire.get(), recorded.fd(), sizeof(Hello) + sizeof(KeyRequest));
  Pass(recorded.fd(), wire.get(), sizeof(Challenge));
  ASSERT_EQ(handshake.ReadChallenge(member.get()), DialerHandshake::Result::kProven);
  ASSERT_TRUE(handshake.SendProof(member.get(), -1));
  const std::string proof = Pass(wire.get(), recorded.fd(), kProofBytes);
  ASSERT_EQ(TakeNext(*endpoint).size(), 1u) << "the member itself is let in";

  replaying.Send(hello.data(), hello.size());
  ASSERT_TRUE(WaitFor(replaying.fd(), POLLIN, Clock::now() + kLimit));
  replaying.Send(proof.data(), proof.size());
  const auto answer = replaying.UntilClosed();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->size(), sizeof(Challenge)) << "and nothing after it";
  ExpectOnlyAMemberComes(*endpoint);
}

TEST(Handshake, TheListenersProofSentBackIsRefused) {
  auto endpoint = EndpointWith(kKey);
  Caller stranger(endpoint->Address().tcp);
  Hello hello = HelloOf(kEpoch);
  hello.version = kKeyedWireVersion;
  const KeyRequest request;
  stranger.Send(&hello, sizeof(hello));
  stranger.Send(&request, sizeof(request));
  Challenge challenge;
  size_t got = 0;
  ASSERT_TRUE(WaitFor(stranger.fd(), POLLIN, Clock::now() + kLimit));
  ASSERT_EQ(RecvSmall(stranger.fd(), &challenge, sizeof(challenge), &got, nullptr),
            IoResult::kDone);
  stranger.Send(challenge.proof.data(), challenge.proof.size());
  EXPECT_EQ(stranger.UntilClosed(), "");
  ExpectOnlyAMemberComes(*endpoint);
}

TEST(Handshake, AProofIsForTheAddressThatWasDialled) {
  auto endpoint = EndpointWith(kKey);
  Caller relayed(endpoint->Address().tcp);
  DialerHandshake handshake(CredentialsOf(kKey), HelloOf(kEpoch), 0, "10.0.0.9:1");
  EXPECT_EQ(relayed.Ask(&handshake), DialerHandshake::Result::kUnproven);
  ASSERT_TRUE(handshake.SendProof(relayed.fd(), -1));
  EXPECT_EQ(relayed.UntilClosed(), "");
  ExpectOnlyAMemberComes(*endpoint);
}

TEST(Handshake, AnOutdatedMemberHearsItWithProof) {
  auto endpoint = EndpointWith(kKey);
  Caller late(endpoint->Address().tcp);
  DialerHandshake handshake(CredentialsOf(kKey), HelloOf(kEpoch - 1), 0, endpoint->Address().tcp);
  ASSERT_EQ(late.Ask(&handshake), DialerHandshake::Result::kProven);
  EXPECT_EQ(handshake.kind(), ReplyKind::kMovedOn);
  EXPECT_EQ(handshake.epoch(), kEpoch);
}

TEST(Handshake, AnEpochThatNoJobReachesPoisonsNothing) {
  for (const std::string& key : {std::string(), kKey}) {
    auto endpoint = EndpointWith(key);
    Caller liar(endpoint->Address().tcp);
    const Hello hello = HelloOf(std::numeric_limits<uint64_t>::max());
    if (key.empty()) {
      liar.Send(&hello, sizeof(hello));
    } else {
      liar.Join(key, hello);
    }
    EXPECT_EQ(liar.UntilClosed(), "");
    EXPECT_EQ(endpoint->listener().Newest(), kEpoch) << (key.empty() ? "without" : "with a key");
  }
}

TEST(Handshake, AFloodOfUnfinishedOnesKeepsNoMemberOut) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit before = files;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  auto endpoint = EndpointWith(kKey);
  const Hello hello = HelloOf(kEpoch);
  std::vector<std::unique_ptr<Caller>> flood;
  for (int i = 0; i < 1200; ++i) {
    flood.push_back(std::make_unique<Caller>(endpoint->Address().tcp));
    flood.back()->Send(&hello, sizeof(hello.magic));
  }
  ExpectOnlyAMemberComes(*endpoint);
  EXPECT_EQ(flood.front()->UntilClosed(), "") << "the first of them had to make room";
  flood.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(Handshake, WhatCameBeforeTheKeyIsForgottenWithIt) {
  auto endpoint = EndpointWith("");
  Caller early(endpoint->Address().tcp);
  const Hello hello = HelloOf(kEpoch + 1);
  early.Send(&hello, sizeof(hello));
  EXPECT_TRUE(TakeNext(*endpoint).empty());
  EXPECT_EQ(endpoint->listener().Newest(), kEpoch + 1);
  ASSERT_TRUE(endpoint->SetKey(kKey).ok());
  EXPECT_EQ(early.UntilClosed(), "");
  ExpectOnlyAMemberComes(*endpoint);
  EXPECT_FALSE(endpoint->SetKey("short").ok());
}

// Each pair says whether the dialer and the listener want encryption.
TEST(Handshake, AConnectionIsEncryptedIfEitherEndWantsIt) {
  for (const auto& [dialer, listener] : {std::pair{false, false}, {true, false}, {false, true}}) {
    auto endpoint = EndpointWith(kKey, listener);
    Caller member(endpoint->Address().tcp);
    DialerHandshake handshake(CredentialsOf(kKey, dialer), HelloOf(kEpoch), 0,
                              endpoint->Address().tcp);
    ASSERT_EQ(member.Ask(&handshake), DialerHandshake::Result::kProven);
    EXPECT_FALSE(handshake.refuses_encryption());
    ASSERT_TRUE(handshake.SendProof(member.fd(), -1));
    const auto arrivals = TakeNext(*endpoint);
    ASSERT_EQ(arrivals.size(), 1u);
    const auto here = handshake.keys(), there = arrivals[0].keys;
    ASSERT_EQ(here.has_value(), dialer || listener);
    ASSERT_EQ(there.has_value(), dialer || listener);
    if (!here) continue;
    EXPECT_EQ(here->out, there->in);
    EXPECT_EQ(here->in, there->out);
    EXPECT_NE(here->in, here->out);
  }
}

TEST(Handshake, EachConnectionHasKeysOfItsOwn) {
  auto endpoint = EndpointWith(kKey, true);
  std::vector<StreamKeys> keys;
  for (uint32_t rank : {1u, 1u, 2u}) {
    Caller member(endpoint->Address().tcp);
    DialerHandshake handshake(CredentialsOf(kKey), HelloOf(kEpoch, rank), 0,
                              endpoint->Address().tcp);
    ASSERT_EQ(member.Ask(&handshake), DialerHandshake::Result::kProven);
    keys.push_back(*handshake.keys());
  }
  EXPECT_NE(keys[0].out, keys[1].out);
  EXPECT_NE(keys[1].out, keys[2].out);
}

TEST(Handshake, AUnixSocketIsNeverEncrypted) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  const UniqueFd member(fds[0]), other(fds[1]);
  DialerHandshake dialer(CredentialsOf(kKey, true), HelloOf(kEpoch), 0, "name", false);
  ListenerHandshake listener(CredentialsOf(kKey, true), "name", false);
  const auto answerer = [](const Hello&) { return ListenerHandshake::Answer{}; };
  UniqueFd arena;
  ASSERT_TRUE(dialer.SendHello(member.get(), -1));
  EXPECT_EQ(listener.Read(other.get(), answerer, &arena), ListenerHandshake::Result::kAgain);
  ASSERT_EQ(dialer.ReadChallenge(member.get()), DialerHandshake::Result::kProven);
  ASSERT_TRUE(dialer.SendProof(member.get(), -1));
  EXPECT_EQ(listener.Read(other.get(), answerer, &arena), ListenerHandshake::Result::kDone);
  EXPECT_FALSE(dialer.keys() || listener.keys() || dialer.refuses_encryption());
}

TEST(Probe, OnlyAMemberIsAlive) {
  auto member = EndpointWith(kKey), impostor = EndpointWith(kOtherKey), keyless = EndpointWith("");
  EXPECT_TRUE(ProbeAlive(member->Address(), CredentialsOf(kKey), kLimit));
  EXPECT_FALSE(ProbeAlive(impostor->Address(), CredentialsOf(kKey), kLimit));
  EXPECT_FALSE(ProbeAlive(keyless->Address(), CredentialsOf(kKey), kLimit));
}

}  // namespace
}  // namespace ringmaster::transport
