// Checks and reads the messages of one sidecar's stream and passes them to the registry. It doesn't
// use gRPC itself.
//
// Thread rule: one call at a time; the registry is safe from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator.pb.h"
#include "operator/controllers/sidecar_registry.h"

namespace ringmaster::app {

class ReportIntake {
 public:
  enum class Outcome { kTaken, kInvalid, kUnknownPod };
  struct Result {
    Outcome outcome = Outcome::kTaken;
    std::string why;  // why it was not taken
  };
  struct Peer {
    // Why the peer may not speak for the job with this uid; empty if it may.
    std::function<std::string(const std::string& job_uid)> why_not_its_job;
    // Called when the sidecar is accepted; `welcome` is the first message to it.
    std::function<void(v1::OperatorNotice welcome)> on_accepted;
    std::shared_ptr<controllers::NoticeSink> sink;
  };

  // `registry` outlives this object.
  ReportIntake(controllers::SidecarRegistry* registry, Peer peer)
      : registry_(registry), peer_(std::move(peer)) {}

  // A result other than kTaken ends the stream.
  Result Take(const v1::SidecarReport& report);
  // The stream has ended.
  void End();

 private:
  std::string WhyNot(const v1::Registration& registration) const;
  Result Register(const v1::Registration& registration);
  // The following return what is wrong with the report; empty: nothing.
  std::string TakeReport(const v1::SidecarReport& report);
  std::string OnReadiness(const v1::Readiness& readiness);
  std::string OnView(const v1::ViewReport& report);
  std::string OnRecoveryReport(const v1::Recovery& recovery);

  controllers::SidecarRegistry* const registry_;
  const Peer peer_;
  controllers::SidecarRegistry::ConnectionId id_ = 0;  // 0: not registered
};

}  // namespace ringmaster::app
