#include "sidecar/rendezvous/heartbeat_proof.h"

#include <sstream>

#include "common/hex/hex.h"
#include "common/ring_key/ring_key.h"

namespace ringmaster::rendezvous {
namespace {

constexpr char kMagic[] = "RMHB2";
constexpr size_t kNewsBytes = 16, kProofBytes = 32;
constexpr size_t kHexBytes = 2 * kProofBytes;  // of nonces and proofs in lines

constexpr char kForSession[] = "ringmaster heartbeat connection ";
constexpr char kForWelcome[] = "ringmaster heartbeat welcome ";
constexpr char kForBeat[] = "ringmaster heartbeat beat ";
constexpr char kForEcho[] = "ringmaster heartbeat echo ";

bool IsHex(const std::string& text) {
  return text.size() == kHexBytes && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Little-endian.
std::string Write(uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}
uint64_t ReadNumber(std::string_view bytes) {
  uint64_t number = 0;
  for (int i = 8; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

}  // namespace

std::string WriteHello(const HeartbeatHello& hello) {
  return std::string(kMagic) + " " + hello.job + " " + hello.watcher +
         (hello.nonce.empty() ? "" : " " + hello.nonce) + "\n";
}

std::optional<HeartbeatHello> ReadHello(const std::string& line) {
  std::istringstream in(line);
  std::string magic;
  HeartbeatHello hello;
  in >> magic >> hello.job >> hello.watcher >> hello.nonce;
  if (magic != kMagic || hello.job.empty()) return std::nullopt;
  if (!hello.nonce.empty() && !IsHex(hello.nonce)) return std::nullopt;
  return hello;
}

std::string WriteWelcome(const HeartbeatWelcome& welcome) {
  return std::string(kMagic) + " " + welcome.watched +
         (welcome.nonce.empty() ? "" : " " + welcome.nonce + " " + welcome.proof) + "\n";
}

std::optional<HeartbeatWelcome> ReadWelcome(const std::string& line) {
  std::istringstream in(line);
  std::string magic;
  HeartbeatWelcome welcome;
  in >> magic >> welcome.watched >> welcome.nonce >> welcome.proof;
  if (magic != kMagic || welcome.watched.empty()) return std::nullopt;
  const bool proves = !welcome.nonce.empty() || !welcome.proof.empty();
  if (proves && !(IsHex(welcome.nonce) && IsHex(welcome.proof))) return std::nullopt;
  return welcome;
}

std::string MakeHeartbeatNonce() { return hex::Encode(ring_key::MakeRandom()); }

HeartbeatSession::HeartbeatSession(std::string_view key, const HeartbeatHello& hello,
                                   const std::string& watched, const std::string& watched_nonce)
    : key_(ring_key::Prove(key, kForSession,
                           hello.job + "\n" + hello.watcher + "\n" + watched + "\n" + hello.nonce +
                               "\n" + watched_nonce)) {}

std::string HeartbeatSession::Proof() const {
  return proven() ? hex::Encode(ring_key::Prove(key_, kForWelcome, "")) : "";
}

bool HeartbeatSession::IsProof(const std::string& claimed) const {
  return proven() && IsHex(claimed) &&
         ring_key::Proves(key_, kForWelcome, "", *hex::Decode(claimed));
}

size_t HeartbeatSession::size() const { return kNewsBytes + (proven() ? kProofBytes : 0); }

std::string HeartbeatSession::Beat(uint64_t number) const {
  return Signed(kForBeat, number, std::string(kNewsBytes, '\0'));
}

bool HeartbeatSession::IsBeat(uint64_t number, std::string_view bytes) const {
  return IsSigned(kForBeat, number, bytes);
}

std::string HeartbeatSession::Echo(uint64_t number, const HeartbeatNews& news) const {
  return Signed(kForEcho, number, Write(news.epoch) + Write(news.step));
}

std::optional<HeartbeatNews> HeartbeatSession::ReadEcho(uint64_t number,
                                                        std::string_view bytes) const {
  if (!IsSigned(kForEcho, number, bytes)) return std::nullopt;
  return HeartbeatNews{ReadNumber(bytes), ReadNumber(bytes.substr(8))};
}

std::string HeartbeatSession::Signed(std::string_view purpose, uint64_t number,
                                     std::string text) const {
  if (proven()) text += ring_key::Prove(key_, purpose, Write(number) + text);
  return text;
}

bool HeartbeatSession::IsSigned(std::string_view purpose, uint64_t number,
                                std::string_view bytes) const {
  if (bytes.size() != size()) return false;
  return !proven() ||
         ring_key::Proves(key_, purpose, Write(number) + std::string(bytes.substr(0, kNewsBytes)),
                          bytes.substr(kNewsBytes));
}

}  // namespace ringmaster::rendezvous
