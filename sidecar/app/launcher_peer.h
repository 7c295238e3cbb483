// The launcher of this pod: whether it is connected, and what it is asked to do.
//
// It knows no socket: frames go out by a function. Thread rule: the sidecar's loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

using SendFrame = std::function<void(uint64_t connection, const nlohmann::json& frame)>;

class LauncherPeer {
 public:
  explicit LauncherPeer(SendFrame send) : send_(std::move(send)) {}

  void Connected(uint64_t connection);
  void Closed(SteadyTime now);
  bool Is(uint64_t connection) const { return connection == connection_; }
  bool connected() const { return connection_ != 0; }
  bool seen() const { return seen_; }  // has been connected since this sidecar started
  std::optional<SteadyTime> lost_at() const { return lost_at_; }
  // This sidecar stood still for so long: the launcher could not come back meanwhile.
  void ForgiveSleep(SteadyTime::duration slept) {
    if (lost_at_) *lost_at_ += slept;
  }

  // It starts no worker any more; a launcher that connects later hears it too. kLeft: the pod has
  // left, and the job goes on without it. kTerminated: so, because SIGTERM came to this sidecar;
  // the launcher may have got none.
  enum class End { kOfJob, kLeft, kTerminated };
  void Finish(End end);
  // A launcher that is away (this sidecar may have started a moment ago) hears of this and of the
  // next two when it comes back.
  void Kill(const WorkerProcess& worker, const std::string& reason);
  // Kills a worker that its fence has stopped: it asks to be let in though it had built the newest
  // view. The others may wait for its rank; a new process joins, where this one could only be
  // waited for.
  void KillFenced(const WorkerProcess& worker);
  // The grace period after SIGTERM ends.
  void Stop(int grace_seconds, const std::string& reason);
  // Answered by a `state` frame.
  void Look(const WorkerProcess& worker) const;

 private:
  void SendFinish() const;
  void SendOrKeep(const nlohmann::json& frame);

  const SendFrame send_;
  uint64_t connection_ = 0;  // 0: none
  bool seen_ = false;
  std::optional<SteadyTime> lost_at_;
  std::optional<End> end_;
  // What a launcher is told as soon as it connects, by slot: whose worker is to be killed. A worker
  // that connects again and again meanwhile stands here once. Behind the last slot: that all are to
  // stop.
  std::map<int, std::string> kept_;
};

}  // namespace ringmaster::app
