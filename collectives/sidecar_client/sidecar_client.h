// The worker's side of the worker link: JSON frames to its sidecar on a unix socket
// (docs/contracts.md, section 2).
//
// It has a thread of its own, so that a worker still answers while it sleeps in user code. It
// pings, reconnects for ever, and says that the worker is fenced after 10 s without an answered
// ping (on the clock that counts suspended time, too).
//
// Thread rule: Send() from any thread; the handler is called on the client's thread, without locks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

#include "collectives/sidecar_client/frame_connection.h"
#include "collectives/sidecar_client/frame_queue.h"
#include "collectives/sidecar_client/heartbeat.h"

namespace ringmaster::sidecar_client {

class SidecarHandler {
 public:
  virtual ~SidecarHandler() = default;
  virtual nlohmann::json Hello() = 0;                     // the first frame of each connection
  virtual nlohmann::json PingFields() = 0;                // what a ping carries beside its number
  virtual void OnFrame(const nlohmann::json& frame) = 0;  // all but `pong`
  // Once until the sidecar is heard again, which a `welcome` or OnHeardAgain says.
  virtual void OnFenced(const std::string& why) = 0;
  virtual void OnHeardAgain() = 0;  // on the connection on which it was silent
};

class SidecarClient {
 public:
  struct Options {
    std::string socket;
    int ping_ms = 250;  // both hold until a `welcome` says otherwise
    int fence_ms = 10000;
  };

  SidecarClient(Options options, SidecarHandler* handler);
  // Starts the client's thread, which calls the handler. Called once.
  void Start();
  ~SidecarClient();  // sends what is queued, if that is possible at once

  // Kept until there is a connection, then sent in order.
  void Send(const nlohmann::json& frame);
  // Sends what is queued, if that is possible at once, and ends the connection. There will be none
  // any more, and the handler is not called again.
  void HangUp();
  // The next ping is sent together with the next frames, and not at its time.
  void PingSoon() { ping_soon_ = true; }
  // The next ping is sent now.
  void PingNow();
  // Waits until the sidecar has answered a ping that was sent after everything that was queued
  // before this call; over several connections, if necessary. False: not by the deadline. What was
  // sent on a connection that has died since, the handler has to say again after the next
  // `welcome`.
  bool AwaitHeard(std::chrono::steady_clock::time_point deadline);
  // Why there is no connection now; empty if there is one.
  std::string trouble() const;

 private:
  void Loop();
  void Connect();
  void Disconnect(const std::string& why);
  // Does what is due, and hands what is queued to the connection.
  void Act(int64_t now);
  void AwaitEvents(int64_t now);
  int64_t NextTimer(int64_t now) const;
  void CheckFence(int64_t now);
  void Ping(int64_t now);
  void HandleFrame(const nlohmann::json& frame);
  Status HandleTyped(const std::string& type, const nlohmann::json& frame);
  bool welcomed() const { return connection_.is_open() && welcomed_; }

  const Options options_;
  SidecarHandler* const handler_;
  int wake_ = -1;  // eventfd
  std::atomic<bool> ping_soon_{false};
  FrameQueue queue_;

  // Used by the client's thread alone.
  FrameConnection connection_;
  bool welcomed_ = false;  // on this connection
  Heartbeat heartbeat_;
  int64_t connect_at_ = 0;  // ms, boot time
  int connect_wait_ms_ = 0;

  std::thread thread_;
};

}  // namespace ringmaster::sidecar_client
