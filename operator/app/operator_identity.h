// The operator's own certificate: the authority signs it when the process starts, and it is renewed
// long before it expires. Its key stays in this process and is never stored.
//
// Thread rule: constant after construction except for the renewal by a thread of its own.
#pragma once

#include <memory>
#include <thread>

#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "common/tls/memory_file.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::app {

class OperatorIdentity {
 public:
  static constexpr std::chrono::hours kLifetime{24 * 90};

  static kube::Result<std::unique_ptr<OperatorIdentity>> Create(
      const tls::KeyPair& authority, std::chrono::seconds lifetime = kLifetime);

  const tls::Files& files() const { return files_; }

 private:
  OperatorIdentity(const tls::KeyPair& authority, std::chrono::seconds lifetime)
      : authority_(authority), lifetime_(lifetime) {}
  void Renew(std::stop_token stop);

  const tls::KeyPair authority_;
  const std::chrono::seconds lifetime_;
  std::unique_ptr<tls::MemoryFile> ca_, certificate_, key_;
  std::string key_pem_;
  tls::Files files_;
  std::jthread thread_;  // last member: its thread uses the others
};

}  // namespace ringmaster::app
