#include "operator/app/report_intake.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/parse.h"
#include "common/job/facts_proto.h"
#include "common/job/rebuild.h"
#include "common/membership/message_json.h"
#include "common/membership/view_json.h"
#include "operator/controllers/sidecar_report.h"

namespace ringmaster::app {
namespace {

// Many times what a pod with all its workers has to say. What is kept of a sidecar grows with it.
constexpr std::size_t kMostReportBytes = 256 << 10;

// These hold a view, which is as large as the job.
bool HoldsAView(const v1::SidecarReport& report) {
  return report.has_view() || report.has_recovery();
}

// Parses figures about a rebuild; nullopt if the text has none.
std::optional<job::Rebuild> ParseRebuild(const std::string& text) {
  return job::RebuildFromJson(fields::ParseOrDiscard(text));
}

std::vector<job::Stall> ParseStalls(const std::string& text) {
  return job::StallsFromJson(fields::ParseOrDiscard(text));
}

}  // namespace

ReportIntake::Result ReportIntake::Take(const v1::SidecarReport& report) {
  if (report.has_registration()) return Register(report.registration());
  if (id_ == 0) return {Outcome::kInvalid, "the first report has to be a registration"};
  const std::string wrong = TakeReport(report);
  return {wrong.empty() ? Outcome::kTaken : Outcome::kInvalid, wrong};
}

void ReportIntake::End() {
  if (id_ != 0) registry_->Disconnect(id_);
}

std::string ReportIntake::WhyNot(const v1::Registration& registration) const {
  if (id_ != 0) return "a second registration in one stream";
  if (registration.job_uid().empty() || registration.pod_uid().empty() ||
      registration.job_name().empty()) {
    return "job_name, job_uid and pod_uid are required in a registration";
  }
  if (std::string wrong = peer_.why_not_its_job(registration.job_uid()); !wrong.empty()) {
    return wrong;
  }
  return registry_->WhyNotConnect(job::FromProto(registration));
}

ReportIntake::Result ReportIntake::Register(const v1::Registration& registration) {
  if (std::string wrong = WhyNot(registration); !wrong.empty()) return {Outcome::kInvalid, wrong};
  if (!registry_->KnowsPodOf(job::FromProto(registration))) {
    // The cache may lag behind a new pod; its sidecar connects again until the pod is known.
    return {
        Outcome::kUnknownPod,
        fmt::format("pod_name is \"{}\", pod_uid is \"{}\": the operator knows no such pod of job "
                    "{}/{} (yet)",
                    registration.pod_name(), registration.pod_uid(), registration.job_namespace(),
                    registration.job_name())};
  }
  v1::OperatorNotice welcome;
  welcome.mutable_accepted()->set_message("welcome " + registration.pod_name());
  welcome.mutable_accepted()->set_asks_for_views(true);
  peer_.on_accepted(std::move(welcome));
  id_ = registry_->Connect(job::FromProto(registration), peer_.sink);
  return {};
}

std::string ReportIntake::TakeReport(const v1::SidecarReport& report) {
  if (const std::size_t bytes = report.ByteSizeLong();
      bytes > kMostReportBytes && !HoldsAView(report)) {
    return fmt::format("a report of {} bytes, at most {} are allowed for one without a view", bytes,
                       kMostReportBytes);
  }
  switch (report.kind_case()) {
    case v1::SidecarReport::kReadiness:
      return OnReadiness(report.readiness());
    case v1::SidecarReport::kView:
      return OnView(report.view());
    case v1::SidecarReport::kWorkerExit:
      registry_->Take(id_, job::FromProto(report.worker_exit()));
      return "";
    case v1::SidecarReport::kEarlierExits: {
      controllers::EarlierExits earlier;
      for (const auto& exit : report.earlier_exits().exits()) {
        earlier.exits.push_back(job::FromProto(exit));
      }
      registry_->Take(id_, std::move(earlier));
      return "";
    }
    case v1::SidecarReport::kFinished:
      registry_->Take(id_, controllers::FinishedReport{report.finished().epoch()});
      return "";
    case v1::SidecarReport::kHealth:
      registry_->Take(
          id_, controllers::HealthReport{report.health().able(),
                                         std::chrono::milliseconds(report.health().unable_ms())});
      return "";
    case v1::SidecarReport::kStalls:
      registry_->Take(id_, controllers::StallsReport{ParseStalls(report.stalls().stalls())});
      return "";
    case v1::SidecarReport::kFailingGpus:
      registry_->Take(id_, controllers::FailingGpusReport{job::GpusFromJson(
                               fields::ParseOrDiscard(report.failing_gpus().gpus()))});
      return "";
    case v1::SidecarReport::kStepAwaited:
      registry_->Take(id_, controllers::StepAwaitedReport{
                               std::chrono::milliseconds(report.step_awaited().awaited_ms())});
      return "";
    case v1::SidecarReport::kAllLeave:
      registry_->Take(id_, controllers::AllLeaveReport{});
      return "";
    case v1::SidecarReport::kRecovery:
      return OnRecoveryReport(report.recovery());
    default:
      return "";  // from a newer sidecar
  }
}

std::string ReportIntake::OnReadiness(const v1::Readiness& readiness) {
  membership::Candidate candidate;
  if (!readiness.member().empty()) {
    auto decoded = membership::DecodeCandidate(readiness.member());
    if (!decoded) return "readiness.member: " + decoded.error();
    candidate = std::move(*decoded);
  } else if (readiness.ready()) {
    return "readiness.member is required when ready";
  }
  registry_->Take(id_, controllers::ReadinessReport{
                           readiness.ready(),
                           {readiness.missing_slots().begin(), readiness.missing_slots().end()},
                           std::move(candidate)});
  return "";
}

std::string ReportIntake::OnView(const v1::ViewReport& report) {
  membership::ViewPtr view;
  if (!report.view().empty()) {
    auto decoded = membership::DecodeView(report.view());
    if (!decoded) return "view: " + decoded.error();
    view = std::make_shared<const membership::View>(std::move(*decoded));
  }
  const membership::Epoch epoch = view != nullptr ? view->epoch : report.epoch();
  registry_->Take(id_,
                  controllers::ViewReport{epoch, std::move(view), ParseRebuild(report.rebuild())});
  return "";
}

std::string ReportIntake::OnRecoveryReport(const v1::Recovery& recovery) {
  auto report = membership::DecodeReport(recovery.report());
  if (!report) return "recovery." + report.error();
  registry_->Take(id_, std::move(*report));
  return "";
}

}  // namespace ringmaster::app
