#include "sidecar/rendezvous/operator_session.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/job/facts_proto.h"
#include "common/membership/view_json.h"

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMaxCarried = 1000;
constexpr size_t kMaxMissed = 64;
constexpr size_t kMaxTold = 32;

membership::Sizes SizesIn(const v1::Target& target) {
  membership::Sizes sizes{target.min_pods(),
                          {target.allowed_pods().begin(), target.allowed_pods().end()}};
  std::sort(sizes.allowed.begin(), sizes.allowed.end());
  return sizes;
}

}  // namespace

void OperatorSession::SetReadiness(const ReadinessInfo& info) {
  v1::SidecarReport report;
  v1::Readiness* readiness = report.mutable_readiness();
  readiness->set_ready(info.ready);
  for (uint32_t slot : info.missing_slots) readiness->add_missing_slots(slot);
  readiness->set_member(info.member);
  readiness_ = report;
  Report(report);
}

void OperatorSession::ReportView(membership::ViewPtr view, const std::string& rebuild,
                                 uint64_t step) {
  // Steps may have been lost in a rebuild that no operator has heard of: it is not forgotten for
  // the next one.
  if (!connected_ && view_) missed_.push_back(*view_);
  if (missed_.size() > kMaxMissed) missed_.pop_front();
  view_ = {std::move(view), rebuild, step};
  Report(ReportOf(*view_));
}

v1::SidecarReport OperatorSession::WholeReportOf(const ReportedView& reported) {
  v1::SidecarReport report;
  v1::ViewReport* view = report.mutable_view();
  if (reported.view != nullptr) view->set_view(membership::EncodeView(*reported.view));
  view->set_epoch(membership::EpochOf(reported.view));
  view->set_rebuild(reported.rebuild);
  view->set_step(reported.step);
  return report;
}

v1::SidecarReport OperatorSession::ReportOf(const ReportedView& reported) const {
  const membership::ViewPtr& view = reported.view;
  const bool whole =
      !operator_asks_ || view == nullptr || view->coordinator == registration_.pod_uid;
  if (whole) return WholeReportOf(reported);
  v1::SidecarReport report;
  report.mutable_view()->set_epoch(view->epoch);
  report.mutable_view()->set_rebuild(reported.rebuild);
  report.mutable_view()->set_step(reported.step);
  return report;
}

void OperatorSession::ReportWorkerExit(const job::WorkerExit& exit) {
  v1::SidecarReport report;
  *report.mutable_worker_exit() = job::ToProto(exit);
  if (SendExit({report, true})) return;
  carried_.push_back({report, true});
  if (carried_.size() > kMaxCarried) carried_.pop_front();
}

void OperatorSession::ReportFinished(uint64_t epoch) {
  v1::SidecarReport report;
  report.mutable_finished()->set_epoch(epoch);
  finished_ = report;
  Report(report);
}

void OperatorSession::ReportHealth(bool able, milliseconds unable) {
  v1::SidecarReport report;
  report.mutable_health()->set_able(able);
  report.mutable_health()->set_unable_ms(unable.count());
  Report(report);
}

void OperatorSession::ReportStalls(const std::vector<job::Stall>& stalls) {
  v1::SidecarReport report;
  report.mutable_stalls()->set_stalls(job::ToJson(stalls).dump());
  Report(report);
}

void OperatorSession::ReportFailingGpus(const std::vector<job::GpuHealth>& gpus) {
  v1::SidecarReport report;
  report.mutable_failing_gpus()->set_gpus(job::ToJson(gpus).dump());
  Report(report);
}

void OperatorSession::ReportStepAwaited(milliseconds awaited) {
  v1::SidecarReport report;
  report.mutable_step_awaited()->set_awaited_ms(awaited.count());
  Report(report);
}

void OperatorSession::ReportAllLeave() {
  v1::SidecarReport report;
  report.mutable_all_leave();
  Report(report);
}

void OperatorSession::ReportRecovery(const std::string& report_json) {
  v1::SidecarReport report;
  report.mutable_recovery()->set_report(report_json);
  Report(report);
}

void OperatorSession::Begin(ReportSink* stream) {
  stream_ = stream;
  v1::SidecarReport registration;
  *registration.mutable_registration() = job::ToProto(registration_);
  stream->Send({registration, false});
  TellEarlierExits();
  for (const ReportedView& missed : missed_) Report(ReportOf(missed));
  if (readiness_ && !forgets_.readiness) stream->Send({*readiness_, false});
  if (view_ && !forgets_.view) Report(ReportOf(*view_));
  if (finished_) stream->Send({*finished_, false});
  for (const QueuedReport& queued : std::exchange(carried_, {})) {
    if (!SendExit(queued)) carried_.push_back(queued);
  }
}

void OperatorSession::TellEarlierExits() {
  if (told_.empty()) return;
  v1::SidecarReport report;
  for (const v1::WorkerExit& exit : told_) *report.mutable_earlier_exits()->add_exits() = exit;
  Report(report);
}

void OperatorSession::Report(const v1::SidecarReport& report) {
  if (stream_ != nullptr) stream_->Send({report, false});
}

bool OperatorSession::SendExit(const QueuedReport& exit) {
  if (stream_ == nullptr || !stream_->Send(exit)) return false;
  told_.push_back(exit.report.worker_exit());
  if (told_.size() > kMaxTold) told_.pop_front();
  return true;
}

milliseconds OperatorSession::End(std::vector<QueuedReport> unsent) {
  stream_ = nullptr;
  // They are the newest of those that it took.
  told_.resize(told_.size() - std::min(unsent.size(), told_.size()));
  carried_.insert(carried_.begin(), std::make_move_iterator(unsent.begin()),
                  std::make_move_iterator(unsent.end()));
  if (std::exchange(connected_, false)) callbacks_.on_connection(false);
  return std::exchange(backoff_, std::min(backoff_ * 2, kLastBackoff));
}

void OperatorSession::OnNotice(const v1::OperatorNotice& notice) {
  backoff_ = kFirstBackoff;
  if (!std::exchange(connected_, true)) OnFirstNotice(notice);
  Dispatch(notice);
}

void OperatorSession::OnFirstNotice(const v1::OperatorNotice& notice) {
  const bool asked = std::exchange(operator_asks_, notice.accepted().asks_for_views());
  // It is of an earlier version than the one before it, for whom the epoch was enough.
  if (asked && !operator_asks_ && view_) Report(ReportOf(*view_));
  missed_.clear();  // this stream began with them, or was told at once
  callbacks_.on_connection(true);
}

void OperatorSession::Dispatch(const v1::OperatorNotice& notice) {
  switch (notice.kind_case()) {
    case v1::OperatorNotice::kViewDecided:
      return callbacks_.on_found(notice.view_decided().view());
    case v1::OperatorNotice::kDrain: {
      const v1::Drain& drain = notice.drain();
      return callbacks_.on_drain(
          {drain.pod_uids().begin(), drain.pod_uids().end()}, drain.reason(),
          drain.deadline_unix_ms(),
          drain.has_left_ms() ? std::optional<int64_t>(drain.left_ms()) : std::nullopt,
          drain.has_all_leave() ? std::optional<bool>(drain.all_leave()) : std::nullopt);
    }
    case v1::OperatorNotice::kPodGone:
      return callbacks_.on_pod_gone(notice.pod_gone().pod_uid(), notice.pod_gone().reason());
    case v1::OperatorNotice::kTarget:
      return callbacks_.on_target(SizesIn(notice.target()), notice.target().expected_pods());
    case v1::OperatorNotice::kFinish:
      return callbacks_.on_finish(notice.finish().reason());
    case v1::OperatorNotice::kRecover:
      return callbacks_.on_recover(notice.recover().lineage(), notice.recover().fresh_workers());
    case v1::OperatorNotice::kViewWanted:
      if (view_ && view_->view != nullptr) Report(WholeReportOf(*view_));
      return;
    case v1::OperatorNotice::kAccepted:
      return callbacks_.on_accepted();
    case v1::OperatorNotice::KIND_NOT_SET:
      return;
  }
}

}  // namespace ringmaster::rendezvous
