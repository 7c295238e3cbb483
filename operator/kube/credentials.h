// Keeps the bearer token and the client certificate of a client fresh: it reads files again every
// minute and after a 401, and runs an exec plugin again shortly before its answer expires and after
// a 401.
//
// Thread rule: safe from any thread; one caller at a time reads the files or runs the plugin, and
// the others wait for it until their own deadlines.
#pragma once

#include <chrono>
#include <functional>
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
  using Clock = std::chrono::steady_clock;
  // `now`: the clock that measures age; tests replace it.
  explicit Credentials(const ClientConfig& config,
                       std::function<Clock::time_point()> now = &Clock::now);

  // The error's message says which file or program failed and how. While no fresh credential can be
  // had, the old one is returned until it expires.
  Result<Credential> Get(Clock::time_point deadline);
  // The server has refused `refused`, so the next Get fetches a credential again. Returns false if
  // the credential is fixed in the configuration. While another thread fetches one, it waits for
  // that at most until `deadline`.
  bool Expire(const Credential& refused, Clock::time_point deadline);

 private:
  Result<Credential> Fetch(Clock::time_point deadline);
  Result<Credential> FromFiles();
  Result<Credential> FromPlugin(Clock::time_point deadline);

  const ClientConfig config_;
  const bool fixed_;  // the credential is in the configuration itself
  const std::function<Clock::time_point()> now_;
  // A std::timed_mutex, because a caller waits only until its own deadline while another runs the
  // plugin, and sync::Mutex has no timed lock.
  std::timed_mutex mu_;
  // Guarded by mu_.
  std::optional<Credential> cached_;
  Clock::time_point fresh_until_{};  // fetched again from then on
  Clock::time_point good_until_{};   // not used from then on
};

}  // namespace ringmaster::kube
