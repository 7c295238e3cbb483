// The sidecar's stream to the operator (proto/operator.proto), connected again for ever, without
// gRPC in this header.
//
// What the operator has to know is kept here and told again to every new stream, so the sidecar
// reports and forgets. Thread rule: call from the loop; callbacks are posted to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/job/gpu_health.h"
#include "common/job/registration.h"
#include "common/job/stall.h"
#include "common/job/worker_exit.h"
#include "common/membership/view.h"
#include "sidecar/rendezvous/operator_callbacks.h"

namespace asio {
class io_context;
}

namespace ringmaster::rendezvous {

class OperatorClient {
 public:
  // `target`: unix:/path or host:port. `tls_dir`: ca.crt, tls.crt and tls.key; empty: no TLS, for
  // loopback and unix sockets.
  static std::unique_ptr<OperatorClient> Create(asio::io_context* loop, const std::string& target,
                                                const std::string& tls_dir,
                                                job::Registration registration,
                                                OperatorCallbacks callbacks);
  virtual ~OperatorClient() = default;

  virtual void SetEpoch(uint64_t epoch) = 0;  // for the registration of the next stream
  virtual void SetReadiness(const ReadinessInfo& readiness) = 0;
  // `view`: null where only the rebuild is reported.
  virtual void ReportView(membership::ViewPtr view, const std::string& rebuild_json,
                          uint64_t step) = 0;
  virtual void ReportWorkerExit(const job::WorkerExit& exit) = 0;
  virtual void ReportFinished(uint64_t epoch) = 0;
  // These six are not told again to another stream: `on_connection` asks for the first five, the
  // operator for the last.
  virtual void ReportHealth(bool able, std::chrono::milliseconds unable) = 0;
  virtual void ReportStalls(const std::vector<job::Stall>& stalls) = 0;
  virtual void ReportFailingGpus(const std::vector<job::GpuHealth>& gpus) = 0;
  virtual void ReportStepAwaited(std::chrono::milliseconds awaited) = 0;
  virtual void ReportAllLeave() = 0;
  virtual void ReportRecovery(const std::string& report_json) = 0;

  // A message for the voter R. `answer` gets R's reply, or with `ok` false why there
  // is none; that is logged here.
  virtual void AskRecord(const std::string& message, std::chrono::milliseconds deadline,
                         std::function<void(bool ok, const std::string& reply)> answer) = 0;

  // Half-closes the stream so that reports still arrive, waits a moment for the operator to read
  // them, and ends.
  virtual void Stop() = 0;
};

}  // namespace ringmaster::rendezvous
