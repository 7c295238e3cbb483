// The bearer token (and, from an exec plugin, the client certificate) of a client, kept fresh.
//
// Thread rule: safe from any thread; one caller at a time reads the file or runs the plugin.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "operator/kube/kubeconfig.h"

namespace ringmaster::kube {

struct Credential {
  std::string token;
  std::string client_cert_pem, client_key_pem;
};

class Credentials {
 public:
  explicit Credentials(const ClientConfig& config) : config_(config) {}

  // The error's message says which file or program failed and how.
  Result<Credential> Get();
  // After a 401: the next Get reads or asks again.
  void Expire();

 private:
  Result<Credential> FromFile();
  Result<Credential> FromPlugin();

  const ClientConfig config_;
  std::mutex mu_;
  // Guarded by mu_.
  std::optional<Credential> cached_;
  std::chrono::steady_clock::time_point valid_until_{};
};

}  // namespace ringmaster::kube
