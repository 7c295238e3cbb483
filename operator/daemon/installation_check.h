// `ringmaster-operator check`: asks an installed operator through its Services, as sidecars and
// Prometheus do, whether it works. `helm test` runs it in a pod of its own.
//
// Thread rule: one thread; it blocks until the check has ended.
#pragma once

#include <chrono>
#include <string>
#include <tl/expected.hpp>

namespace ringmaster::daemon {

// Both addresses are "HOST:PORT", where HOST is a name or an IP (one of version 6 in brackets).
struct InstallationToCheck {
  std::string grpc;               // what sidecars dial; only the leader is behind it
  std::string metrics;            // plain HTTP, any replica; empty: not looked at
  std::chrono::seconds wait{60};  // how long a replica may take until it leads
};

// What was found, a line each; the error says what is wrong with the installation.
tl::expected<std::string, std::string> CheckInstallation(const InstallationToCheck& installation);

// The words behind `check` on the command line. Prints the result. Exit status: 0 the installation
// works, 1 it doesn't, 2 bad usage.
int RunInstallationCheck(int argc, char** argv);

}  // namespace ringmaster::daemon
