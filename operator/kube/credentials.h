// The bearer token and the client certificate of a client, kept fresh: files are read again every
// minute and after a 401, an exec plugin runs again shortly before its answer expires and after a
// 401.
//
// Thread rule: safe from any thread; one caller at a time reads the files or runs the plugin, the
// others wait for it until their deadline.
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
  // `now`: for tests, what ages is counted by.
  explicit Credentials(const ClientConfig& config,
                       std::function<Clock::time_point()> now = &Clock::now);

  // The error's message says which file or program failed and how. While a fresh credential can't
  // be had, the old one serves until it has expired.
  Result<Credential> Get(Clock::time_point deadline);
  // The server has refused `refused`: the next Get reads or asks again. False: there is nothing to
  // ask, what we have is what the configuration says.
  bool Expire(const Credential& refused);

 private:
  Result<Credential> Fetch(Clock::time_point deadline);
  Result<Credential> FromFiles();
  Result<Credential> FromPlugin(Clock::time_point deadline);

  const ClientConfig config_;
  const bool fixed_;  // nothing to read and nobody to ask
  const std::function<Clock::time_point()> now_;
  // Not sync::Mutex: a caller waits for it until its own deadline only, while another runs the
  // plugin, and sync::Mutex has no timed lock.
  std::timed_mutex mu_;
  // Guarded by mu_.
  std::optional<Credential> cached_;
  Clock::time_point fresh_until_{};  // asked for again from then on
  Clock::time_point good_until_{};   // of no use from then on
};

}  // namespace ringmaster::kube
