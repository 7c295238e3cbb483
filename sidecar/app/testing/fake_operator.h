// An operator without a cluster, for the sidecar's tests: bootstraps the job when enough pods are
// ready, keeps the record in memory, passes notices on. No gRPC in this header.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ringmaster::app::testing {

class FakeOperator {
 public:
  // Bootstraps the first view when `pods` pods are ready.
  // `tls_dir`: ca.crt, tls.crt and tls.key of the operator; empty: no TLS.
  FakeOperator(std::string socket_path, int pods, uint32_t min_pods, std::string tls_dir = "");
  ~FakeOperator();

  void Start();
  void Stop();  // away: streams break, nobody answers

  void Drain(const std::vector<std::string>& pods, const std::string& reason);
  std::string HttpOf(const std::string& pod_uid);  // "" until it has registered
  int finished() const;                            // sidecars that reported it
  std::vector<int> exit_codes() const;
  // When the first sidecar reported a view newer than `epoch`; zero if none has yet.
  std::chrono::steady_clock::time_point ReportedAfter(uint64_t epoch) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringmaster::app::testing
