// The gRPC service that sidecars connect to: it translates between operator.proto and the
// SidecarRegistry, and hands messages for the record to the QuorumRecordStore. With TLS a sidecar
// may speak for the job of its certificate only.
//
// Thread rule: Start and Stop from one thread. gRPC calls in on its own threads; nothing here
// blocks them but a record's compare-and-swap, which has a thread of its own.
#pragma once

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
  // kUnavailable if `listen` (host:port or unix:/path) can't be bound; the message names it.
  // `tls`: the operator's own certificate; none: any peer that connects is believed.
  static kube::Result<std::unique_ptr<OperatorLinkServer>> Start(
      const std::string& listen, controllers::SidecarRegistry* registry,
      controllers::QuorumRecordStore* records, const std::optional<tls::Files>& tls = std::nullopt);
  virtual ~OperatorLinkServer() = default;
  // What sidecars dial: `listen` with the port that was chosen.
  virtual std::string target() const = 0;
  virtual void Stop() = 0;
};

// unix:/path or a loopback address: nobody but this machine can reach it.
bool IsLocalAddress(const std::string& address);

}  // namespace ringmaster::app
