// The sidecar's side of the worker link, for tests: it answers hello and ping, records what workers
// say, and says what it is told to say.
//
// Thread rule: one thread of its own reads; Send, Await and the rest from the test's thread.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "common/worker_link/frame.h"

namespace ringmaster::sidecar_client {

class FakeSidecar {
 public:
  using Json = nlohmann::json;

  explicit FakeSidecar(std::string path);
  ~FakeSidecar();

  // The state with which the next hello of a slot is welcomed; by default "bootstrap".
  void Welcome(int slot, const std::string& state);
  // The ring key in base64, which every welcome brings from now on; empty: none.
  void SetRingKey(const std::string& key);
  void Send(int slot, const Json& frame);
  // The newest frame of this type from the slot for which `matches` holds; null after 30 s.
  Json Await(int slot, const std::string& type,
             const std::function<bool(const Json&)>& matches = {});
  // How many frames of this type have come from the slot.
  int heard(int slot, const std::string& type);
  // False: it has not come within the fake's patience.
  [[nodiscard]] bool AwaitHeard(int slot, const std::string& type, int count);
  [[nodiscard]] bool AwaitGone(int slot);
  int hellos(int slot);
  void AnswerPings(bool answer);
  void SetFence(int ms);
  // How often the next worker is to ping.
  void SetPing(int ms);
  // From now on workers may begin again after a shutdown, as with sidecars of this version.
  void LetRest();
  // Closes listener and connections, as when the sidecar dies, and listens again.
  void Restart();

  // Stops the workers of `stop_first`, waits until they have answered, and sends a view of `slots`
  // to `slots`.
  uint64_t InstallView(const std::vector<int>& slots, const std::string& reason,
                       const std::vector<int>& stop_first, bool train = true);

 private:
  struct Peer {
    int fd = -1;
    int slot = -1;
    worker_link::FrameReader reader;
  };

  void Listen() REQUIRES(mu_);
  void CloseAll() REQUIRES(mu_);
  void Loop();
  void Accept() REQUIRES(mu_);
  void Read(Peer* peer) REQUIRES(mu_);
  void Handle(Peer* peer, const Json& frame) REQUIRES(mu_);
  // The newest one; null if there is none.
  const Json* FindHeard(int slot, const std::string& type,
                        const std::function<bool(const Json&)>& matches) REQUIRES(mu_);
  int CountHeard(int slot, const std::string& type) REQUIRES(mu_);
  bool IsConnected(int slot) const REQUIRES(mu_);
  void Write(int fd, const Json& frame);

  const std::string path_;
  int wake_ = -1;

  sync::Mutex mu_;
  sync::CondVar changed_;
  int listener_ GUARDED_BY(mu_) = -1;
  bool closing_ GUARDED_BY(mu_) = false;
  bool answer_pings_ GUARDED_BY(mu_) = true;
  bool rests_ GUARDED_BY(mu_) = false;
  int fence_ms_ GUARDED_BY(mu_) = 10000;
  int ping_ms_ GUARDED_BY(mu_) = 20;
  std::string ring_key_ GUARDED_BY(mu_);
  uint64_t epoch_ GUARDED_BY(mu_) = uint64_t{1} << 40;
  std::vector<Peer> peers_ GUARDED_BY(mu_);
  std::map<int, std::string> welcome_ GUARDED_BY(mu_);
  std::map<int, Json> hello_ GUARDED_BY(mu_);
  std::map<int, int> hellos_ GUARDED_BY(mu_);
  std::map<int, std::vector<Json>> heard_ GUARDED_BY(mu_);  // by slot
  std::thread thread_;
};

}  // namespace ringmaster::sidecar_client
