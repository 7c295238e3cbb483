// What a sidecar says to its operator, over streams that break and to operators that forget: what
// every operator has to know is told again on each new stream. And it hands what an operator says
// to the part of the sidecar that it concerns.
//
// It knows no socket and no clock: its owner dials, and hands in streams and what came over them.
// Thread rule: the sidecar's loop only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/job/gpu_health.h"
#include "common/job/registration.h"
#include "common/job/stall.h"
#include "common/job/worker_exit.h"
#include "common/membership/view.h"
#include "operator.pb.h"
#include "sidecar/rendezvous/operator_callbacks.h"

namespace ringmaster::rendezvous {

struct QueuedReport {
  v1::SidecarReport report;
  bool must_arrive = false;  // sent again by the next stream if this one breaks before
};

// One stream, as far as the session needs it.
class ReportSink {
 public:
  virtual ~ReportSink() = default;
  // False: the stream has ended, and has handed back already what it had not sent.
  virtual bool Send(const QueuedReport& queued) = 0;
};

class OperatorSession {
 public:
  // FOR TESTS: what a new stream is not told again.
  struct Forgets {
    bool readiness = false, view = false;
  };

  OperatorSession(job::Registration registration, OperatorCallbacks callbacks)
      : OperatorSession(std::move(registration), std::move(callbacks), Forgets()) {}
  OperatorSession(job::Registration registration, OperatorCallbacks callbacks, Forgets forgets)
      : registration_(std::move(registration)),
        callbacks_(std::move(callbacks)),
        forgets_(forgets) {}

  const job::Registration& registration() const { return registration_; }
  // The operator has said something on the stream that there is.
  bool connected() const { return connected_; }

  // What OperatorClient has, too.
  void SetEpoch(uint64_t epoch) { registration_.epoch = epoch; }
  void SetReadiness(const ReadinessInfo& readiness);
  void ReportView(membership::ViewPtr view, const std::string& rebuild_json, uint64_t step);
  void ReportWorkerExit(const job::WorkerExit& exit);
  void ReportFinished(uint64_t epoch);
  void ReportHealth(bool able, std::chrono::milliseconds unable);
  void ReportStalls(const std::vector<job::Stall>& stalls);
  void ReportFailingGpus(const std::vector<job::GpuHealth>& gpus);
  void ReportStepAwaited(std::chrono::milliseconds awaited);
  void ReportAllLeave();
  void ReportRecovery(const std::string& report_json);

  // A stream begins, and is told what every operator has to know. It lives until End().
  void Begin(ReportSink* stream);
  void OnNotice(const v1::OperatorNotice& notice);
  // It has ended, `unsent` is what it had to say for sure. Returns when to begin the next one.
  std::chrono::milliseconds End(std::vector<QueuedReport> unsent);
  // There is no stream any more, and comes none.
  void Stop() { stream_ = nullptr; }

 private:
  struct ReportedView {
    membership::ViewPtr view;  // null: only the rebuild is reported
    std::string rebuild;
    uint64_t step = 0;
  };

  void Report(const v1::SidecarReport& report);
  // The whole view where the operator may have it from nobody else, else its epoch.
  v1::SidecarReport ReportOf(const ReportedView& reported) const;
  static v1::SidecarReport WholeReportOf(const ReportedView& reported);
  void OnFirstNotice(const v1::OperatorNotice& notice);
  // False: there is no stream that takes it.
  bool SendExit(const QueuedReport& exit);
  void TellEarlierExits();
  void Dispatch(const v1::OperatorNotice& notice);

  static constexpr std::chrono::milliseconds kFirstBackoff{50}, kLastBackoff{2000};

  job::Registration registration_;
  const OperatorCallbacks callbacks_;
  const Forgets forgets_;
  ReportSink* stream_ = nullptr;  // null: none
  std::optional<v1::SidecarReport> readiness_, finished_;
  std::optional<ReportedView> view_;
  std::deque<ReportedView> missed_;   // about views before `view_`
  std::deque<QueuedReport> carried_;  // exits that no stream has taken
  // The newest exits that a stream has taken. Who heard of them may not have counted them.
  std::deque<v1::WorkerExit> told_;
  std::chrono::milliseconds backoff_ = kFirstBackoff;
  bool connected_ = false;
  // For views that it lacks: as the last operator has said that was heard.
  bool operator_asks_ = false;
};

}  // namespace ringmaster::rendezvous
