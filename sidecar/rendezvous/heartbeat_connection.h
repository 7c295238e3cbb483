// The watching end of one heartbeat connection: from its being dialled until it breaks, or its
// owner gives it up. Afterwards it is silent; the next try is another object.
//
// Thread rule: everything on the thread that runs the loop, callbacks included.
#pragma once

#include <asio/ip/tcp.hpp>
#include <asio/streambuf.hpp>
#include <functional>
#include <memory>
#include <string>

#include "sidecar/rendezvous/heartbeat_proof.h"

namespace asio {
class io_context;
}

namespace ringmaster::rendezvous {

struct HeartbeatTarget {
  std::string job, self;  // uids
  std::string key;        // the job's ring key; empty: no proof is asked for
  std::string peer;       // uid of the pod that is expected there
  bool must_prove = false;
};

struct HeartbeatEvents {
  // Both lines have been said. `proven`: by the peer.
  std::function<void(bool proven)> on_open;
  // `late`: how many beats have been sent since the one that it answers.
  std::function<void(const HeartbeatNews& news, uint64_t late)> on_echo;
  // After one of these the connection is over. It is refused or reset; this process has no
  // descriptor or no memory for it, which says nothing about the peer; another pod listens there;
  // what has come is not proven.
  std::function<void(const std::string& why)> on_broken;
  std::function<void()> on_unable;
  std::function<void()> on_other_pod;
  std::function<void(const std::string& why)> on_refused;
};

class HeartbeatConnection : public std::enable_shared_from_this<HeartbeatConnection> {
 public:
  HeartbeatConnection(asio::io_context* loop, HeartbeatTarget target, HeartbeatEvents events);

  void Dial(const asio::ip::tcp::endpoint& endpoint);
  // Sends a beat, once it is open and the one before has left.
  void Beat();
  void Close();

 private:
  void Greet();
  void ReadWelcome();
  void OnWelcome(const HeartbeatWelcome& welcome);
  void ReadEcho();
  // For the end of this connection: closes it, then calls what is given, if nobody closed it
  // before.
  template <class Event, class... Args>
  void End(const Event& event, const Args&... args);

  asio::ip::tcp::socket socket_;
  const HeartbeatTarget target_;
  const HeartbeatEvents events_;
  const HeartbeatHello hello_;
  HeartbeatSession session_;
  asio::streambuf line_{kMaxHeartbeatLine};
  std::string out_, beat_, echo_;
  uint64_t beats_ = 0, echoes_ = 0;  // sent, come
  bool open_ = false, writing_ = false, closed_ = false;
};

}  // namespace ringmaster::rendezvous
