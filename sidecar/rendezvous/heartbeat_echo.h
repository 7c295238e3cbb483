// The watched end of a heartbeat connection: answers the line of the watching sidecar with a line
// of its own, then every beat with its news.
//
// Thread rule: everything on the thread that runs the socket's loop, callbacks included.
#pragma once

#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <functional>
#include <memory>
#include <string>

#include "sidecar/rendezvous/heartbeat_proof.h"

namespace ringmaster::rendezvous {

// Of all connections of one sidecar.
struct EchoSubject {
  std::string job, self;  // uids
  std::string key;        // the job's ring key; empty: nothing is proven
  HeartbeatNews news;
  // A beat is not what it should be, or its proof is wrong: the connection is closed.
  std::function<void(const std::string& from, const std::string& why)> on_refused;
};

class HeartbeatEcho : public std::enable_shared_from_this<HeartbeatEcho> {
 public:
  HeartbeatEcho(asio::ip::tcp::socket socket, std::shared_ptr<const EchoSubject> subject);

  void Start();
  void Close();
  bool has_beaten() const { return beats_ > 0; }
  // A beat has come that proves that the watching sidecar has the job's key.
  bool proven() const { return session_.proven() && beats_ > 0; }

 private:
  void ExpectBytes();
  void Welcome(const std::string& line);
  void Write(const std::string& bytes);
  void Read();
  void Refuse(const std::string& why);

  asio::ip::tcp::socket socket_;
  asio::steady_timer silence_;
  const std::shared_ptr<const EchoSubject> subject_;
  asio::streambuf line_{kMaxHeartbeatLine};
  HeartbeatSession session_;
  uint64_t beats_ = 0;  // that have come
  std::string beat_, answer_;
};

}  // namespace ringmaster::rendezvous
