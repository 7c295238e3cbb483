// What a job's sidecars report to the operator, from the bytes of a report to the plan that is made
// of it and the status that is written. A tenant's pod may report anything: its own job may suffer,
// the operator may not.
//
// An input is a row of reports, each as a byte that names the pod, two bytes of length, and a
// SidecarReport in protobuf's wire format.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "operator/api/horovod_job.h"
#include "operator/app/report_intake.h"
#include "operator/planner/testing/world.h"

using namespace ringmaster;  // NOLINT: nothing else is here

namespace {

constexpr int kPods = 3;
constexpr std::size_t kMostStatusBytes = 1 << 20;  // more than this an API server refuses

class Silent final : public controllers::NoticeSink {
  void Send(const planner::Notice&) override {}
};

// A job of three pods that train, and the operator's ends of their streams.
class Job {
 public:
  Job() {
    registry_.SetPodLookup([](const job::Registration&) { return true; });
    for (int i = 0; i < kPods; ++i) {
      const planner::SidecarFacts& known = world_.Sidecar(i);
      streams_.push_back(std::make_unique<app::ReportIntake>(
          &registry_,
          app::ReportIntake::Peer{[](const std::string&) { return std::string(); },
                                  [](const v1::OperatorNotice&) {}, std::make_shared<Silent>()}));
      v1::SidecarReport report;
      v1::Registration& registration = *report.mutable_registration();
      registration.set_job_namespace("default");
      registration.set_job_name(world_.in.job.name);
      registration.set_job_uid(world_.in.job.uid);
      registration.set_pod_name(known.pod_name);
      registration.set_pod_uid(known.pod_uid);
      Take(i, report);
    }
  }

  void Take(int pod, const v1::SidecarReport& report) { streams_[pod]->Take(report); }

  // A look of the operator at what it has heard.
  void Look() {
    planner::Snapshot& in = world_.in;
    controllers::JobFacts facts = registry_.Facts(in.job.uid);
    in.sidecars = std::move(facts.sidecars);
    in.exits = std::move(facts.exits);
    in.rebuilds = std::move(facts.rebuilds);
    if (membership::EpochOf(facts.view) > membership::EpochOf(in.view)) in.view = facts.view;
    const planner::Decision decision = planner::Plan(in);
    const api::Json status = api::StatusToJson(decision.status);
    if (status.dump(-1, ' ', false, api::Json::error_handler_t::strict).size() > kMostStatusBytes)
      std::abort();
    in.job.status = api::StatusFromJson(status);
    if (api::StatusToJson(in.job.status) != status) std::abort();
    registry_.Notify(in.job.uid, decision.notices);
    registry_.ExitsCounted(in.job.uid, decision.exits_counted);
    in.now += std::chrono::seconds(1);
  }

 private:
  planner::World world_ = planner::World::Training(kPods);
  controllers::SidecarRegistry registry_{nullptr, {.wall = [this] { return world_.in.now; }}};
  std::vector<std::unique_ptr<app::ReportIntake>> streams_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view left(reinterpret_cast<const char*>(data), size);
  Job job;
  while (left.size() >= 3) {
    const int pod = static_cast<std::uint8_t>(left[0]) % kPods;
    const std::size_t length =
        static_cast<std::uint8_t>(left[1]) << 8 | static_cast<std::uint8_t>(left[2]);
    left.remove_prefix(3);
    v1::SidecarReport report;
    const std::string_view bytes = left.substr(0, length);
    left.remove_prefix(bytes.size());
    if (!report.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) continue;
    job.Take(pod, report);
    job.Look();
  }
  return 0;
}
