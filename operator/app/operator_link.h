// The gRPC service that sidecars connect to. It translates between operator.proto and the
// SidecarRegistry, and passes messages for the record to the QuorumRecordStore. With TLS a sidecar
// may speak only for the job in its certificate.
//
// Thread rule: Start and Stop from one thread. gRPC calls it on threads of its own, and it never
// blocks them: the compare-and-swap of a record has other threads.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "common/tls/credentials.h"
#include "operator/controllers/quorum_record_store.h"
#include "operator/controllers/sidecar_registry.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::app {

class OperatorLinkServer {
 public:
  // Returns kUnavailable if `listen` (host:port or unix:/path) can't be bound; the message names
  // it. `tls` is the operator's own certificate; without it any peer that connects is trusted. A
  // sidecar that reads nothing for `read_within`, while it has something to read, is disconnected.
  static kube::Result<std::unique_ptr<OperatorLinkServer>> Start(
      const std::string& listen, controllers::SidecarRegistry* registry,
      controllers::QuorumRecordStore* records, const std::optional<tls::Files>& tls = std::nullopt,
      std::chrono::milliseconds read_within = std::chrono::minutes(1));
  virtual ~OperatorLinkServer() = default;
  // The address for sidecars: `listen` with the port that was chosen.
  virtual std::string target() const = 0;
  virtual void Stop() = 0;
};

// unix:/path or a loopback address, which only this machine can reach.
bool IsLocalAddress(const std::string& address);

}  // namespace ringmaster::app
