#include "sidecar/rendezvous/operator_client.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/job/facts_proto.h"
#include "common/rpc/keep_alive.h"
#include "common/sync/mutex.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "operator.grpc.pb.h"
#include "sidecar/rendezvous/call_deadline.h"
#include "sidecar/rendezvous/calls_in_flight.h"
#include "sidecar/rendezvous/dial_once.h"
#include "sidecar/rendezvous/failed_tries.h"
#include "sidecar/rendezvous/operator_stream.h"
#include "sidecar/rendezvous/outage.h"

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{50}, kLastBackoff{2000};
// How long one attempt may take, the TLS handshake in it. All pods of a job dial at the same
// moment, and the machine may be busy.
constexpr milliseconds kConnect{2000};
constexpr milliseconds kFarewell{500};  // for the last reports to reach the operator
constexpr size_t kMaxCarried = 1000;
constexpr size_t kMaxMissed = 64;

v1::SidecarReport RegistrationReport(const job::Registration& registration) {
  v1::SidecarReport report;
  *report.mutable_registration() = job::ToProto(registration);
  return report;
}

v1::SidecarReport ReadinessReport(const ReadinessInfo& info) {
  v1::SidecarReport report;
  v1::Readiness* readiness = report.mutable_readiness();
  readiness->set_ready(info.ready);
  for (uint32_t slot : info.missing_slots) readiness->add_missing_slots(slot);
  readiness->set_member(info.member);
  return report;
}

v1::SidecarReport ExitReport(const job::WorkerExit& exit) {
  v1::SidecarReport report;
  *report.mutable_worker_exit() = job::ToProto(exit);
  return report;
}

class GrpcOperatorClient final : public OperatorClient {
 public:
  GrpcOperatorClient(asio::io_context* loop, const std::string& target, const std::string& tls_dir,
                     job::Registration registration, OperatorCallbacks callbacks)
      : loop_(loop),
        target_(target),
        secure_(!tls_dir.empty()),
        credentials_(
            secure_ ? tls::ChannelCredentials(tls::FilesIn(tls_dir), {.exact = tls::kOperatorName})
                    : grpc::InsecureChannelCredentials()),
        registration_(std::move(registration)),
        callbacks_(std::move(callbacks)),
        retry_(*loop),
        patience_(*loop),
        calls_(std::make_shared<CallsInFlight>()),
        alive_(std::make_shared<bool>(true)) {
    Connect();
  }
  ~GrpcOperatorClient() override { Stop(); }

  void SetEpoch(uint64_t epoch) override { registration_.epoch = epoch; }

  void SetReadiness(const ReadinessInfo& readiness) override {
    readiness_ = ReadinessReport(readiness);
    Report(*readiness_, false);
  }
  void ReportView(const std::string& view, const std::string& rebuild, uint64_t step) override {
    v1::SidecarReport report;
    report.mutable_view()->set_view(view);
    report.mutable_view()->set_rebuild(rebuild);
    report.mutable_view()->set_step(step);
    // Steps may have been lost in a rebuild that no operator has heard of: it is not forgotten for
    // the next one.
    if (!connected_ && view_) missed_.push_back(*view_);
    if (missed_.size() > kMaxMissed) missed_.pop_front();
    view_ = report;
    Report(report, false);
  }
  void ReportWorkerExit(const job::WorkerExit& exit) override { Report(ExitReport(exit), true); }
  void ReportFinished(uint64_t epoch) override {
    v1::SidecarReport report;
    report.mutable_finished()->set_epoch(epoch);
    finished_ = report;
    Report(report, false);
  }

  void ReportHealth(bool able, milliseconds unable) override {
    v1::SidecarReport report;
    report.mutable_health()->set_able(able);
    report.mutable_health()->set_unable_ms(unable.count());
    Report(report, false);
  }
  void ReportStalls(const std::vector<job::Stall>& stalls) override {
    v1::SidecarReport report;
    report.mutable_stalls()->set_stalls(job::ToJson(stalls).dump());
    Report(report, false);
  }
  void ReportRecovery(const std::string& report_json) override {
    v1::SidecarReport report;
    report.mutable_recovery()->set_report(report_json);
    Report(report, false);
  }

  void AskRecord(const std::string& message, milliseconds deadline,
                 std::function<void(bool, const std::string&)> answer) override {
    struct Call {
      grpc::ClientContext context;
      v1::RecordRequest request;
      v1::RecordReply reply;
    };
    auto call = std::make_shared<Call>();
    call->request.set_job_namespace(registration_.job_namespace);
    call->request.set_job_name(registration_.job_name);
    call->request.set_job_uid(registration_.job_uid);
    call->request.set_from(registration_.pod_uid);
    call->request.set_message(message);
    if (!calls_->Begin(&call->context)) return;
    const auto patience = CallDeadline::Begin(loop_, call, deadline);
    stub_->async()->Record(
        &call->context, &call->request, &call->reply,
        [this, loop = loop_, alive = alive_, calls = calls_, call, patience,
         answer = std::move(answer)](grpc::Status status) {
          std::string text = status.ok() ? call->reply.message() : patience->Why(status);
          asio::post(*loop, [this, alive, answer, patience, ok = status.ok(), text] {
            patience->End();
            if (*alive) LogRecordCall(ok, text);
            answer(ok, text);
          });
          calls->End(&call->context);
        });
  }

  void Stop() override {
    if (stopped_) return;
    stopped_ = true;
    *alive_ = false;
    retry_.cancel();
    patience_.cancel();
    calls_->StopAndWait();
    if (stream_ == nullptr) return;
    stream_->HalfClose();
    if (!connected_ || !stream_->WaitDone(kFarewell)) {
      stream_->Cancel();
      stream_->WaitDone(std::chrono::seconds(2));
    }
    stream_.reset();
  }

 private:
  void Dial() {
    grpc::ChannelArguments arguments;
    DialOnce(&arguments);
    rpc::KeepAlive(&arguments);
    // Another channel to the same address has a connection of its own.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // Whatever the Service is called: the name that is asked for is the certificate's.
    if (secure_) arguments.SetSslTargetNameOverride(tls::kOperatorName);
    channel_ = grpc::CreateCustomChannel(target_, credentials_, arguments);
    stub_ = v1::OperatorLink::NewStub(channel_);
  }

  // Nothing else ends an attempt that nobody answers.
  void AwaitConnection() {
    patience_.expires_after(kConnect);
    patience_.async_wait([this, alive = alive_](std::error_code ended) {
      const bool waits = !ended && *alive && stream_ != nullptr;
      if (waits && channel_->GetState(false) != GRPC_CHANNEL_READY) stream_->Cancel();
    });
  }

  void Connect() {
    // One that is idle has lost its connection, and makes another when it is used.
    const auto state = channel_ == nullptr ? GRPC_CHANNEL_SHUTDOWN : channel_->GetState(false);
    if (state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_IDLE) Dial();
    AwaitConnection();
    auto post = [loop = loop_, alive = alive_](std::function<void()> task) {
      asio::post(*loop, [alive, task = std::move(task)] {
        if (*alive) task();
      });
    };
    stream_ = OperatorStream::Open(
        stub_.get(),
        [this, post](const v1::OperatorNotice& notice) {
          post([this, notice] { OnNotice(notice); });
        },
        [this, post](std::vector<QueuedReport> unsent, std::string why) {
          auto kept = std::make_shared<std::vector<QueuedReport>>(std::move(unsent));
          post([this, kept, why = std::move(why)] { OnDone(std::move(*kept), why); });
        });
    stream_->Send({RegistrationReport(registration_), false});
    for (const v1::SidecarReport& report : missed_) stream_->Send({report, false});
    for (const auto& report : {readiness_, view_, finished_}) {
      if (report) stream_->Send({*report, false});
    }
    for (const QueuedReport& queued : std::exchange(carried_, {})) {
      if (!stream_->Send(queued)) carried_.push_back(queued);
    }
  }

  void Report(const v1::SidecarReport& report, bool must_arrive) {
    if ((stream_ != nullptr && stream_->Send({report, must_arrive})) || !must_arrive) return;
    carried_.push_back({report, true});
    if (carried_.size() > kMaxCarried) carried_.pop_front();
  }

  void OnDone(std::vector<QueuedReport> unsent, const std::string& why) {
    stream_.reset();
    patience_.cancel();
    if (!why.empty()) LogNotReached(why);
    carried_.insert(carried_.begin(), std::make_move_iterator(unsent.begin()),
                    std::make_move_iterator(unsent.end()));
    if (std::exchange(connected_, false)) callbacks_.on_connection(false);
    retry_.expires_after(backoff_);
    backoff_ = std::min(backoff_ * 2, kLastBackoff);
    retry_.async_wait([this, alive = alive_](std::error_code error) {
      if (!error && *alive) Connect();
    });
  }

  void LogNotReached(const std::string& why) {
    const auto now = Outage::Clock::now();
    switch (outage_.Failed(now)) {
      case Outage::Severity::kNothing:
        return spdlog::debug("operator not reached yet reason=\"{}\"", why);
      case Outage::Severity::kInfo:
        return spdlog::info("operator not reached yet reason=\"{}\"", why);
      case Outage::Severity::kWarning:
        spdlog::warn(
            "operator not reached: training goes on, scaling, replacement and status wait. Does it "
            "run, and may this pod reach it (Service, NetworkPolicy)? seconds={} target={} "
            "reason=\"{}\"",
            outage_.Lasted(now).count(), target_, why);
    }
  }

  void LogRecordCall(bool reached, const std::string& why) {
    const auto now = FailedTries::Clock::now();
    const auto streak = reached ? record_.Succeeded(now) : record_.Failed(now);
    if (!streak) return;
    const double seconds = std::chrono::duration<double>(streak->lasted).count();
    if (reached) {
      return spdlog::info("record reached again seconds={:.1f} tries={}", seconds, streak->tries);
    }
    spdlog::info("record not reached seconds={:.1f} tries={} reason=\"{}\"", seconds, streak->tries,
                 why);
  }

  void OnNotice(const v1::OperatorNotice& notice) {
    backoff_ = kFirstBackoff;
    if (!std::exchange(connected_, true)) {
      missed_.clear();  // this stream began with them, or was told at once
      callbacks_.on_connection(true);
    }
    if (const auto lasted = outage_.Ended(Outage::Clock::now())) {
      spdlog::info("operator reached again seconds={}", lasted->count());
    }
    switch (notice.kind_case()) {
      case v1::OperatorNotice::kViewDecided:
        return callbacks_.on_found(notice.view_decided().view());
      case v1::OperatorNotice::kDrain: {
        const v1::Drain& drain = notice.drain();
        return callbacks_.on_drain({drain.pod_uids().begin(), drain.pod_uids().end()},
                                   drain.reason(), drain.deadline_unix_ms());
      }
      case v1::OperatorNotice::kPodGone:
        return callbacks_.on_pod_gone(notice.pod_gone().pod_uid(), notice.pod_gone().reason());
      case v1::OperatorNotice::kTarget:
        return callbacks_.on_target(notice.target().min_pods(), notice.target().expected_pods());
      case v1::OperatorNotice::kFinish:
        return callbacks_.on_finish(notice.finish().reason());
      case v1::OperatorNotice::kRecover:
        return callbacks_.on_recover(notice.recover().lineage(), notice.recover().fresh_workers());
      case v1::OperatorNotice::kAccepted:
        return callbacks_.on_accepted();
      case v1::OperatorNotice::KIND_NOT_SET:
        return;
    }
  }

  asio::io_context* const loop_;
  const std::string target_;
  const bool secure_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::shared_ptr<grpc::Channel> channel_;
  job::Registration registration_;
  const OperatorCallbacks callbacks_;
  asio::steady_timer retry_;
  asio::steady_timer patience_;  // with an attempt to connect
  std::unique_ptr<v1::OperatorLink::Stub> stub_;
  std::shared_ptr<CallsInFlight> calls_;
  std::shared_ptr<bool> alive_;  // tasks that gRPC's threads posted may run after Stop
  std::shared_ptr<OperatorStream> stream_;
  std::optional<v1::SidecarReport> readiness_, view_, finished_;
  std::deque<v1::SidecarReport> missed_;  // about views before `view_`
  std::deque<QueuedReport> carried_;
  Outage outage_;
  FailedTries record_;  // asking it
  milliseconds backoff_ = kFirstBackoff;
  bool connected_ = false;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<OperatorClient> OperatorClient::Create(asio::io_context* loop,
                                                       const std::string& target,
                                                       const std::string& tls_dir,
                                                       job::Registration registration,
                                                       OperatorCallbacks callbacks) {
  return std::make_unique<GrpcOperatorClient>(loop, target, tls_dir, std::move(registration),
                                              std::move(callbacks));
}

}  // namespace ringmaster::rendezvous
