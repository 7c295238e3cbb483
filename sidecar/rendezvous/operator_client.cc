#include "sidecar/rendezvous/operator_client.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <optional>

#include "common/job/facts_proto.h"
#include "common/rpc/keep_alive.h"
#include "common/sync/mutex.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "operator.grpc.pb.h"
#include "sidecar/rendezvous/calls_in_flight.h"
#include "sidecar/rendezvous/failed_tries.h"
#include "sidecar/rendezvous/outage.h"

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstBackoff{50}, kLastBackoff{2000};
// How long one attempt may take, the TLS handshake in it (gRPC calls this the least time between
// two). All pods of a job dial at the same moment, and the machine may be busy.
constexpr milliseconds kConnect{2000};
constexpr milliseconds kFarewell{500};  // for the last reports to reach the operator
constexpr size_t kMaxCarried = 1000;
constexpr size_t kMaxMissed = 64;

struct Queued {
  v1::SidecarReport report;
  bool must_arrive = false;  // sent again by the next stream if this one breaks before
};

// One stream. gRPC's threads call its reactions; it owns itself until OnDone.
class Stream final : public grpc::ClientBidiReactor<v1::SidecarReport, v1::OperatorNotice> {
 public:
  using NoticeHandler = std::function<void(const v1::OperatorNotice&)>;
  using DoneHandler = std::function<void(std::vector<Queued> unsent, std::string why)>;

  static std::shared_ptr<Stream> Open(v1::OperatorLink::Stub* stub, NoticeHandler notice,
                                      DoneHandler done) {
    auto stream = std::shared_ptr<Stream>(new Stream(std::move(notice), std::move(done)));
    stream->self_ = stream;
    stub->async()->Attend(&stream->context_, stream.get());
    stream->AddHold();  // writes come from the loop, outside of reactions
    stream->StartRead(&stream->incoming_);
    stream->StartCall();
    return stream;
  }

  void Send(Queued queued) {
    sync::MutexLock lock(&mu_);
    queue_.push_back(std::move(queued));
    if (!closed_ && !writing_) WriteNext();
  }

  void HalfClose() {
    sync::MutexLock lock(&mu_);
    half_close_ = true;
    if (!closed_ && !writing_) WriteNext();
  }

  void Cancel() { context_.TryCancel(); }

  bool WaitDone(milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    sync::MutexLock lock(&mu_);
    while (!done_) {
      if (!ended_.WaitUntil(&mu_, deadline)) return done_;
    }
    return true;
  }

 private:
  Stream(NoticeHandler notice, DoneHandler done)
      : on_notice_(std::move(notice)), on_done_(std::move(done)) {}

  void WriteNext() REQUIRES(mu_) {
    if (!queue_.empty()) {
      writing_ = true;
      StartWrite(&queue_.front().report);
    } else if (half_close_) {
      writing_ = true;
      StartWritesDone();
    }
  }

  void OnWriteDone(bool ok) override {
    sync::MutexLock lock(&mu_);
    writing_ = false;
    if (!ok) return;  // the read fails too, and ends it
    queue_.pop_front();
    if (!closed_) WriteNext();
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      on_notice_(incoming_);
      StartRead(&incoming_);
      return;
    }
    sync::MutexLock lock(&mu_);
    if (std::exchange(closed_, true)) return;
    RemoveHold();
  }

  void OnDone(const grpc::Status& status) override {
    std::vector<Queued> unsent;
    std::shared_ptr<Stream> self;
    {
      sync::MutexLock lock(&mu_);
      for (Queued& queued : queue_) {
        if (queued.must_arrive) unsent.push_back(std::move(queued));
      }
      queue_.clear();
      self = std::move(self_);
    }
    on_done_(std::move(unsent), status.error_message());
    sync::MutexLock lock(&mu_);
    done_ = true;
    ended_.NotifyAll();
  }

  const NoticeHandler on_notice_;
  const DoneHandler on_done_;
  grpc::ClientContext context_;
  v1::OperatorNotice incoming_;
  std::shared_ptr<Stream> self_;
  sync::Mutex mu_;
  sync::CondVar ended_;
  std::deque<Queued> queue_ GUARDED_BY(mu_);
  bool writing_ GUARDED_BY(mu_) = false;
  bool half_close_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;
  bool done_ GUARDED_BY(mu_) = false;
};

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
        registration_(std::move(registration)),
        callbacks_(std::move(callbacks)),
        retry_(*loop),
        calls_(std::make_shared<CallsInFlight>()),
        alive_(std::make_shared<bool>(true)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(kConnect.count()));
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, static_cast<int>(kLastBackoff.count()));
    rpc::KeepAlive(&arguments);
    const auto credentials =
        tls_dir.empty()
            ? grpc::InsecureChannelCredentials()
            : tls::ChannelCredentials(tls::FilesIn(tls_dir), {.exact = tls::kOperatorName});
    // Whatever the Service is called: the name that is asked for is the certificate's.
    if (!tls_dir.empty()) arguments.SetSslTargetNameOverride(tls::kOperatorName);
    auto channel = grpc::CreateCustomChannel(target, credentials, arguments);
    stub_ = v1::OperatorLink::NewStub(channel);
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
    call->context.set_deadline(std::chrono::system_clock::now() + deadline);
    call->request.set_job_namespace(registration_.job_namespace);
    call->request.set_job_name(registration_.job_name);
    call->request.set_job_uid(registration_.job_uid);
    call->request.set_from(registration_.pod_uid);
    call->request.set_message(message);
    if (!calls_->Begin(&call->context)) return;
    stub_->async()->Record(&call->context, &call->request, &call->reply,
                           [this, loop = loop_, alive = alive_, calls = calls_, call,
                            answer = std::move(answer)](grpc::Status status) {
                             std::string text =
                                 status.ok() ? call->reply.message() : status.error_message();
                             asio::post(*loop, [this, alive, answer, ok = status.ok(), text] {
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
  void Connect() {
    auto post = [loop = loop_, alive = alive_](std::function<void()> task) {
      asio::post(*loop, [alive, task = std::move(task)] {
        if (*alive) task();
      });
    };
    stream_ = Stream::Open(
        stub_.get(),
        [this, post](const v1::OperatorNotice& notice) {
          post([this, notice] { OnNotice(notice); });
        },
        [this, post](std::vector<Queued> unsent, std::string why) {
          auto kept = std::make_shared<std::vector<Queued>>(std::move(unsent));
          post([this, kept, why = std::move(why)] { OnDone(std::move(*kept), why); });
        });
    stream_->Send({RegistrationReport(registration_), false});
    for (const v1::SidecarReport& report : missed_) stream_->Send({report, false});
    for (const auto& report : {readiness_, view_, finished_}) {
      if (report) stream_->Send({*report, false});
    }
    for (Queued& queued : carried_) stream_->Send(std::move(queued));
    carried_.clear();
  }

  void Report(const v1::SidecarReport& report, bool must_arrive) {
    if (stream_ != nullptr) {
      stream_->Send({report, must_arrive});
    } else if (must_arrive) {
      carried_.push_back({report, true});
      if (carried_.size() > kMaxCarried) carried_.pop_front();
    }
  }

  void OnDone(std::vector<Queued> unsent, const std::string& why) {
    stream_.reset();
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
        return callbacks_.on_target(notice.target().min_pods(), notice.target().max_pods(),
                                    notice.target().expected_pods());
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
  job::Registration registration_;
  const OperatorCallbacks callbacks_;
  asio::steady_timer retry_;
  std::unique_ptr<v1::OperatorLink::Stub> stub_;
  std::shared_ptr<CallsInFlight> calls_;
  std::shared_ptr<bool> alive_;  // tasks that gRPC's threads posted may run after Stop
  std::shared_ptr<Stream> stream_;
  std::optional<v1::SidecarReport> readiness_, view_, finished_;
  std::deque<v1::SidecarReport> missed_;  // about views before `view_`
  std::deque<Queued> carried_;
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
