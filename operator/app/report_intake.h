// What one sidecar says over its stream: checked, read and told to the registry. It knows no gRPC.
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
  enum class Verdict { kTaken, kInvalid, kUnknownPod };
  struct Result {
    Verdict verdict = Verdict::kTaken;
    std::string why;  // not taken
  };
  struct Peer {
    // Empty, or why it may not speak for the job of this uid.
    std::function<std::string(const std::string& job_uid)> why_not_its_job;
    // It is let in: `welcome` is the first that it is told.
    std::function<void(v1::OperatorNotice welcome)> on_accepted;
    std::shared_ptr<controllers::NoticeSink> sink;
  };

  // `registry` outlives it.
  ReportIntake(controllers::SidecarRegistry* registry, Peer peer)
      : registry_(registry), peer_(std::move(peer)) {}

  // What is not taken ends the stream.
  Result Take(const v1::SidecarReport& report);
  // The stream has ended.
  void End();

 private:
  std::string WhyNot(const v1::Registration& registration) const;
  Result Register(const v1::Registration& registration);
  // The rest return what is wrong with the report; empty: nothing.
  std::string TakeReport(const v1::SidecarReport& report);
  std::string OnReadiness(const v1::Readiness& readiness);
  std::string OnView(const v1::ViewReport& report);
  std::string OnRecoveryReport(const v1::Recovery& recovery);

  controllers::SidecarRegistry* const registry_;
  const Peer peer_;
  controllers::SidecarRegistry::ConnectionId id_ = 0;  // 0: not registered
};

}  // namespace ringmaster::app
