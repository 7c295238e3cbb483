#include "sidecar/app/launcher_peer.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace ringmaster::app {
namespace {

using nlohmann::json;

constexpr int kWholePod = std::numeric_limits<int>::max();  // after the kills

json KillFrame(const WorkerProcess& worker, bool by_us, const std::string& reason) {
  return {{"t", "kill"},
          {"slot", worker.slot()},
          {"incarnation", worker.identity.incarnation()},
          {"byUs", by_us},
          {"reason", reason}};
}

}  // namespace

void LauncherPeer::Connected(uint64_t connection) {
  connection_ = connection;
  seen_ = true;
  lost_at_.reset();
  if (end_) SendFinish();
  for (const auto& [slot, frame] : std::exchange(kept_, {})) send_(connection_, json::parse(frame));
}

void LauncherPeer::Closed(SteadyTime now) {
  connection_ = 0;
  lost_at_ = now;
}

void LauncherPeer::Finish(End end) {
  if (end_) return;
  end_ = end;
  if (connected()) SendFinish();
}

void LauncherPeer::SendFinish() const {
  send_(connection_,
        {{"t", "finish"}, {"left", end_ != End::kOfJob}, {"terminated", end_ == End::kTerminated}});
}

void LauncherPeer::SendOrKeep(const json& frame) {
  if (connected()) return send_(connection_, frame);
  kept_[frame.value("slot", kWholePod)] = frame.dump();
}

void LauncherPeer::Kill(const WorkerProcess& worker, const std::string& reason) {
  SendOrKeep(KillFrame(worker, false, reason));
}

// Nobody failed: the launcher counts no failure for it.
void LauncherPeer::KillFenced(const WorkerProcess& worker) {
  SendOrKeep(KillFrame(worker, true, "fenced: this sidecar did not answer it for long"));
}

void LauncherPeer::Look(const WorkerProcess& worker) const {
  if (!connected()) return;
  send_(connection_, {{"t", "look"},
                      {"slot", worker.slot()},
                      {"incarnation", worker.identity.incarnation()},
                      {"pid", worker.identity.pid_at_launcher()}});
}

void LauncherPeer::Stop(int grace_seconds, const std::string& reason) {
  SendOrKeep(
      {{"t", "stop"}, {"graceSeconds", grace_seconds}, {"reason", reason}, {"terminated", true}});
}

}  // namespace ringmaster::app
