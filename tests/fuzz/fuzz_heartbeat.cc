// The lines and messages of heartbeat connections, which anybody on the pods' network can send.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sidecar/rendezvous/heartbeat_proof.h"

using namespace ringmaster::rendezvous;

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// What is read is what would be written: nothing is understood in two ways.
void ReadLines(const std::string& line) {
  if (const auto hello = ReadHello(line)) {
    const auto again = ReadHello(WriteHello(*hello));
    Require(again && again->job == hello->job && again->watcher == hello->watcher &&
            again->nonce == hello->nonce);
  }
  if (const auto welcome = ReadWelcome(line)) {
    const auto again = ReadWelcome(WriteWelcome(*welcome));
    Require(again && again->watched == welcome->watched && again->nonce == welcome->nonce &&
            again->proof == welcome->proof);
  }
}

// Who lacks the key can't say anything that a session believes.
void ReadMessages(std::string_view bytes) {
  static const std::string kNonce(64, 'a');
  static const HeartbeatSession session("the key of the job", {"job", "watcher", kNonce}, "watched",
                                        kNonce);
  Require(!session.IsBeat(0, bytes) && !session.ReadEcho(0, bytes));
  Require(!session.IsProof(std::string(bytes)));
  const HeartbeatSession unproven;
  if (const auto news = unproven.ReadEcho(0, bytes)) {
    Require(unproven.Echo(0, *news) == bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ReadLines(text.substr(0, text.find('\n')));
  ReadMessages(text);
  return 0;
}
