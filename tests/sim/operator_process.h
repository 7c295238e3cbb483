// One process of the operator: the product's controller, planner, record store and registry of
// sidecars, without sockets, threads and clocks. What it knows is lost with it.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "operator.pb.h"
#include "operator/app/report_intake.h"
#include "operator/controllers/job_controller.h"
#include "operator/controllers/quorum_record_store.h"
#include "operator/controllers/sidecar_registry.h"
#include "operator/kube/kube_api.h"
#include "operator/runtime/clock.h"

namespace ringmaster::app::sim {

struct OperatorProcessOptions {
  runtime::Clock clock;
  bool proof_finalizer = true;
  controllers::Forgets forgets;
};

class OperatorProcess {
 public:
  // Sends a notice on the stream of this number.
  using Send = std::function<void(std::uint64_t stream, const v1::OperatorNotice& notice)>;

  OperatorProcess(std::shared_ptr<kube::KubeApi> api, const OperatorProcessOptions& options,
                  Send send);
  ~OperatorProcess();

  // Empty, or why it is refused and the stream ended.
  std::string Take(std::uint64_t stream, const v1::SidecarReport& report);
  void StreamEnded(std::uint64_t stream);
  bool Has(std::uint64_t stream) const { return streams_.count(stream) != 0; }

  kube::Result<std::string> AskRecord(const std::string& message) {
    return records_.Answer({"default", "job", "job"}, message);
  }

  // What a watch tells.
  void Take(const kube::Resource& resource, kube::WatchEvent event) {
    controller_.Take(resource, std::move(event));
  }
  std::optional<runtime::WorkQueue::TimePoint> NextLook() const { return controller_.NextLook(); }
  void LookAtNext() { (void)controller_.LookAtNext(); }

 private:
  const Send send_;
  controllers::SidecarRegistry registry_;
  controllers::QuorumRecordStore records_;
  controllers::JobController controller_;
  std::map<std::uint64_t, std::unique_ptr<ReportIntake>> streams_;
};

}  // namespace ringmaster::app::sim
