// The sidecar's side of the worker link for tests: answers hello and ping, records what workers
// say, says what it is told.
//
// Thread rule: one thread of its own reads; Send, Await and the rest from the test's thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "common/worker_link/frame.h"

namespace ringmaster::sidecar_client {

class FakeSidecar {
 public:
  using Json = nlohmann::json;

  explicit FakeSidecar(std::string path);
  ~FakeSidecar();

  // What the next hello of a slot is welcomed as; "bootstrap" unless told.
  void Welcome(int slot, const std::string& state);
  void Send(int slot, const Json& frame);
  // The newest frame of this type from the slot for which `matches` holds; null after 30 s.
  Json Await(int slot, const std::string& type,
             const std::function<bool(const Json&)>& matches = {});
  void AwaitGone(int slot);
  int hellos(int slot);
  void AnswerPings(bool answer);
  void SetFence(int ms);
  // Closes listener and connections, as when the sidecar dies, and listens again.
  void Restart();

  // Stops `old` workers, waits for their word, and sends a view of `slots` to `slots`.
  uint64_t InstallView(const std::vector<int>& slots, const std::string& reason,
                       const std::vector<int>& stop_first, bool train = true);

 private:
  struct Peer {
    int fd = -1;
    int slot = -1;
    worker_link::FrameReader reader;
  };

  void Listen();
  void CloseAll();
  void Loop();
  void Accept();
  void Read(Peer* peer);
  void Handle(Peer* peer, const Json& frame);
  void Write(int fd, const Json& frame);

  const std::string path_;
  int listener_ = -1;
  int wake_ = -1;

  std::mutex mu_;
  std::condition_variable changed_;
  bool closing_ = false;
  bool answer_pings_ = true;
  int fence_ms_ = 10000;
  uint64_t epoch_ = uint64_t{1} << 40;
  std::vector<Peer> peers_;
  std::map<int, std::string> welcome_;
  std::map<int, Json> hello_;
  std::map<int, int> hellos_;
  std::map<int, std::vector<Json>> heard_;  // by slot
  std::thread thread_;
};

}  // namespace ringmaster::sidecar_client
