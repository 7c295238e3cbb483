// What a sidecar tells an operator about itself when it connects.
//
// A plain value.
#pragma once

#include <cstdint>
#include <string>

namespace ringmaster::job {

struct Registration {
  std::string job_namespace;
  std::string job_name;
  std::string job_uid;
  std::string pod_name;
  std::string pod_uid;
  std::string http_address;  // of /healthz, /readyz, /metrics and /status
  std::uint64_t epoch = 0;   // the newest view that it has installed
  std::string boot_id;       // of the kernel that it runs on; empty: not known

  friend bool operator==(const Registration&, const Registration&) = default;
};

}  // namespace ringmaster::job
