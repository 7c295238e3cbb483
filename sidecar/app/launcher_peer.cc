#include "sidecar/app/launcher_peer.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace ringmaster::app {

void LauncherPeer::Connected(uint64_t connection) {
  connection_ = connection;
  seen_ = true;
  lost_at_.reset();
  if (end_) SendFinish();
  for (const auto& [slot, incarnation] : std::exchange(fenced_, {})) {
    SendKillFenced(slot, incarnation);
  }
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

void LauncherPeer::Kill(const WorkerProcess& worker, const std::string& reason) const {
  if (!connected()) return;
  send_(connection_, {{"t", "kill"},
                      {"slot", worker.slot()},
                      {"incarnation", worker.identity.incarnation()},
                      {"byUs", false},
                      {"reason", reason}});
}

void LauncherPeer::KillFenced(const WorkerProcess& worker) {
  const uint64_t incarnation = worker.identity.incarnation();
  if (connected()) {
    SendKillFenced(worker.slot(), incarnation);
  } else {
    fenced_[worker.slot()] = incarnation;
  }
}

void LauncherPeer::SendKillFenced(int slot, uint64_t incarnation) const {
  // Nobody failed: the launcher counts no failure for it.
  send_(connection_, {{"t", "kill"},
                      {"slot", slot},
                      {"incarnation", incarnation},
                      {"byUs", true},
                      {"reason", "fenced: this sidecar did not answer it for long"}});
}

void LauncherPeer::Look(const WorkerProcess& worker) const {
  if (!connected()) return;
  send_(connection_, {{"t", "look"},
                      {"slot", worker.slot()},
                      {"incarnation", worker.identity.incarnation()},
                      {"pid", worker.identity.pid_at_launcher()}});
}

void LauncherPeer::Stop(int grace_seconds, const std::string& reason) const {
  if (!connected()) return;
  send_(connection_,
        {{"t", "stop"}, {"graceSeconds", grace_seconds}, {"reason", reason}, {"terminated", true}});
}

}  // namespace ringmaster::app
