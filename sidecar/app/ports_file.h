// The ports that this pod's sidecar listens on, kept beside its membership state: the others know
// them from the view, so a sidecar that is started again has to be found there. And its
// incarnation, for the sidecar that finds no membership state.
#pragma once

#include <cstdint>
#include <string>
#include <tl/expected.hpp>

namespace ringmaster::app {

struct Ports {
  int rendezvous = 0, heartbeat = 0, http = 0;  // 0: chosen free
  std::uint64_t incarnation = 0;                // 0: not known

  bool operator==(const Ports&) const = default;
};

// For a sidecar without a membership state: the time, unless the clock was set back since `before`.
// The others take a member for the replacement of another only if its incarnation is above it.
std::uint64_t NewIncarnation(const Ports& before, std::int64_t unix_ms);

class PortsFile {
 public:
  // `directory` must exist. The file carries the pod's uid, as the state file does.
  PortsFile(const std::string& directory, std::string pod_uid);

  // What the forerunner listened on; zeros if there was none or the file can't be read.
  Ports Load() const;
  tl::expected<void, std::string> Store(const Ports& ports) const;

 private:
  const std::string path_;
  const std::string pod_uid_;
};

}  // namespace ringmaster::app
