// Heartbeats between sidecars, over TCP connections of their own. A peer that has not answered for
// a second is suspected; that may be wrong and costs only a rejoin (rule 11). A reset or refused
// connection is told at once, and is no suspicion by itself: the sidecar alone may have died, and
// its successor listens at the same address a moment later, while its workers train on.
//
// Echoes carry the newest epoch that the sender knows, so a missed decision is noticed, and the
// steps that its workers have completed, so that steps that only a lost pod had completed are
// counted as lost. Each pod dials those that it watches and counts their echoes, so both ends of a
// pair notice a failure by themselves.
//
// Where the job has a ring key, both ends prove that they hold it, each beat and each echo for
// itself (heartbeat_proof.h); what is not proven is no sign of life. A pod that does not prove
// anything is believed only if it never did and the view doesn't say that it does: its sidecar is
// of a version before there were proofs.
//
// Thread rule: everything on the thread that runs the io_context, callbacks included. Destroy it
// when that loop has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sidecar/rendezvous/heartbeat_proof.h"
#include "sidecar/rendezvous/watch_choice.h"

namespace asio {
class io_context;
}

namespace ringmaster::rendezvous {

struct HeartbeatOptions {
  std::string bind = "127.0.0.1";
  int port = 0;      // 0: chosen free
  std::string job;   // uid: strangers are turned away
  std::string self;  // pod uid
  std::string key;   // the job's ring key; empty: nothing is proven
  std::chrono::milliseconds interval{250};
  std::chrono::milliseconds suspect_after{1000};
};

struct HeartbeatCallbacks {
  // Once for each time that a peer falls silent, or when another one has its address.
  std::function<void(const std::string& uid, const std::string& reason)> on_suspect;
  // The connection is reset or refused, for the first time since the last echo.
  std::function<void(const std::string& uid, const std::string& reason)> on_unreachable;
  // Every echo, with what the peer knows. A suspected peer is no longer suspected.
  std::function<void(const std::string& uid, const HeartbeatNews& news)> on_heard;
  // Something came from that address which proves nothing, or the wrong thing. May be empty.
  std::function<void(const std::string& from, const std::string& why)> on_refused;
};

class Heartbeats {
 public:
  static tl::expected<std::unique_ptr<Heartbeats>, std::string> Listen(
      asio::io_context* loop, const HeartbeatOptions& options, HeartbeatCallbacks callbacks);
  virtual ~Heartbeats() = default;

  virtual int port() const = 0;
  // The pods of the view, in its order, the own one included: those of them that PeersToWatch
  // chooses are watched from now on. A pod that is watched already goes on undisturbed.
  virtual void Watch(const std::vector<HeartbeatPeer>& pods) = 0;
  virtual void SetNews(const HeartbeatNews& news) = 0;  // what our echoes say from now on
  // In a view so large that this sidecar does not watch all of it: watches the pods around this one
  // for a while. The answer: those of them that have not answered lately and aren't suspected.
  virtual std::vector<std::string> LookAround(const std::string& uid) = 0;
  virtual bool Suspects(const std::string& uid) const = 0;
  virtual bool Unreachable(const std::string& uid) const = 0;  // since the last echo
  virtual uint64_t missed() const = 0;   // beats without an answer in time, ever
  virtual uint64_t refused() const = 0;  // connections that were closed for want of a proof, ever
  virtual void Stop() = 0;
};

}  // namespace ringmaster::rendezvous
