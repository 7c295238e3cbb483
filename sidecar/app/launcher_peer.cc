#include "sidecar/app/launcher_peer.h"

#include <nlohmann/json.hpp>

namespace ringmaster::app {

void LauncherPeer::Connected(uint64_t connection) {
  connection_ = connection;
  seen_ = true;
  lost_at_.reset();
  if (finishing_) send_(connection_, {{"t", "finish"}});
}

void LauncherPeer::Closed(SteadyTime now) {
  connection_ = 0;
  lost_at_ = now;
}

void LauncherPeer::Finish() {
  if (std::exchange(finishing_, true)) return;
  if (connected()) send_(connection_, {{"t", "finish"}});
}

void LauncherPeer::Kill(const WorkerProcess& worker, const std::string& reason, bool by_us) const {
  if (!connected()) return;
  send_(connection_, {{"t", "kill"},
                      {"slot", worker.slot()},
                      {"incarnation", worker.identity.incarnation()},
                      {"byUs", by_us},
                      {"reason", reason}});
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
  send_(connection_, {{"t", "stop"}, {"graceSeconds", grace_seconds}, {"reason", reason}});
}

}  // namespace ringmaster::app
