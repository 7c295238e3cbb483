// The sidecar's options, from the environment (docs/contracts.md, section 1). Read once, in main().
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <tl/expected.hpp>

#include "sidecar/app/glue_clause.h"

namespace ringmaster::app {

struct SidecarOptions {
  std::string version;  // of this program, for people; main() knows it
  std::string job_namespace, job_name, job_uid;
  std::string pod_name, pod_uid, node, zone;
  std::string boot_id;          // of the machine, as Sidecar::Start has read it; empty: not known
  std::string operator_target;  // empty: none
  std::string tls_dir;          // ca.crt, tls.crt, tls.key; empty: no TLS
  std::string ring_key_file;    // empty: the one in tls_dir, if there is one
  std::string ring_key;         // of the job, base64, as Sidecar::Start has read it; empty: none
  std::string state_dir;
  std::string socket;
  std::string bind = "127.0.0.1";       // where it listens
  std::string advertise = "127.0.0.1";  // what it tells others
  // Of this machine's sidecars without TLS: a unix socket in the place of the rendezvous port,
  // which every user of the machine would reach. Empty: the port.
  std::string rendezvous_socket;
  int rendezvous_port = 0, heartbeat_port = 0, http_port = 0;
  int slots = 1;
  std::chrono::seconds init_timeout{600};
  std::chrono::seconds grace{30};
  std::chrono::seconds stopped_worker{1};  // a worker that a signal stopped for so long is killed
  std::string log_format = "text", log_level = "info";  // logging/log.h says what is allowed
  GlueClauses without;                                  // FOR TESTS: taken out
};

// `lookup`: the value of a variable, "" if it is not set. The error names the variable, the value
// and what is allowed.
tl::expected<SidecarOptions, std::string> ParseSidecarOptions(
    const std::function<std::string(const std::string& name)>& lookup);

}  // namespace ringmaster::app
