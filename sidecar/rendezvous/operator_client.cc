#include "sidecar/rendezvous/operator_client.h"

#include <grpcpp/grpcpp.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include "common/logging/log.h"
#include "common/rpc/keep_alive.h"
#include "common/rpc/message_size.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "operator.grpc.pb.h"
#include "sidecar/rendezvous/call_deadline.h"
#include "sidecar/rendezvous/calls_in_flight.h"
#include "sidecar/rendezvous/dial_once.h"
#include "sidecar/rendezvous/failed_tries.h"
#include "sidecar/rendezvous/operator_session.h"
#include "sidecar/rendezvous/operator_stream.h"
#include "sidecar/rendezvous/outage.h"

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;

// How long one attempt may take, the TLS handshake in it. All pods of a job dial at the same
// moment, and the machine may be busy.
constexpr milliseconds kConnect{2000};
constexpr milliseconds kFarewell{500};  // for the last reports to reach the operator

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
        session_(std::move(registration), std::move(callbacks)),
        retry_(*loop),
        patience_(*loop),
        calls_(std::make_shared<CallsInFlight>()),
        alive_(std::make_shared<bool>(true)) {
    Connect();
  }
  ~GrpcOperatorClient() override { Stop(); }

  void SetEpoch(uint64_t epoch) override { session_.SetEpoch(epoch); }
  void SetReadiness(const ReadinessInfo& readiness) override { session_.SetReadiness(readiness); }
  void ReportView(membership::ViewPtr view, const std::string& rebuild, uint64_t step) override {
    session_.ReportView(std::move(view), rebuild, step);
  }
  void ReportWorkerExit(const job::WorkerExit& exit) override { session_.ReportWorkerExit(exit); }
  void ReportFinished(uint64_t epoch) override { session_.ReportFinished(epoch); }
  void ReportHealth(bool able, milliseconds unable) override {
    session_.ReportHealth(able, unable);
  }
  void ReportStalls(const std::vector<job::Stall>& stalls) override {
    session_.ReportStalls(stalls);
  }
  void ReportFailingGpus(const std::vector<job::GpuHealth>& gpus) override {
    session_.ReportFailingGpus(gpus);
  }
  void ReportStepAwaited(milliseconds awaited) override { session_.ReportStepAwaited(awaited); }
  void ReportAllLeave() override { session_.ReportAllLeave(); }
  void ReportRecovery(const std::string& report) override { session_.ReportRecovery(report); }

  void AskRecord(const std::string& message, milliseconds deadline,
                 std::function<void(bool, const std::string&)> answer) override {
    struct Call {
      grpc::ClientContext context;
      v1::RecordRequest request;
      v1::RecordReply reply;
    };
    auto call = std::make_shared<Call>();
    call->request.set_job_namespace(session_.registration().job_namespace);
    call->request.set_job_name(session_.registration().job_name);
    call->request.set_job_uid(session_.registration().job_uid);
    call->request.set_from(session_.registration().pod_uid);
    call->request.set_message(message);
    if (!calls_->Begin(&call->context)) return;
    const auto patience = CallDeadline::Begin(loop_, call, deadline);
    stub_->async()->Record(
        &call->context, &call->request, &call->reply,
        [this, loop = loop_, alive = alive_, calls = calls_, call, patience,
         answer = std::move(answer)](grpc::Status status) mutable {
          std::string text = status.ok() ? call->reply.message() : patience->Why(status);
          asio::post(*loop, [this, alive, answer, patience, ok = status.ok(), text] {
            patience->End();
            if (*alive) LogRecordCall(ok, text);
            answer(ok, text);
          });
          calls->End(std::move(call));
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
    if (!session_.connected() || !stream_->WaitDone(kFarewell)) {
      stream_->Cancel();
      stream_->WaitDone(std::chrono::seconds(2));
    }
    session_.Stop();
    stream_.reset();
  }

 private:
  void Dial() {
    grpc::ChannelArguments arguments;
    DialOnce(&arguments);
    rpc::KeepAlive(&arguments);
    rpc::LimitMessages(&arguments);
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
    session_.Begin(stream_.get());
  }

  void OnDone(std::vector<QueuedReport> unsent, const std::string& why) {
    stream_.reset();
    patience_.cancel();
    if (!why.empty()) LogNotReached(why);
    retry_.expires_after(session_.End(std::move(unsent)));
    retry_.async_wait([this, alive = alive_](std::error_code error) {
      if (!error && *alive) Connect();
    });
  }

  void LogNotReached(const std::string& why) {
    const auto now = Outage::Clock::now();
    switch (outage_.Failed(now)) {
      case Outage::Severity::kNothing:
        return logging::Debug("operator not reached yet reason=\"{}\"", why);
      case Outage::Severity::kInfo:
        return logging::Info("operator not reached yet reason=\"{}\"", why);
      case Outage::Severity::kWarning:
        logging::Warn(
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
      return logging::Info("record reached again seconds={:.1f} tries={}", seconds, streak->tries);
    }
    logging::Info("record not reached seconds={:.1f} tries={} reason=\"{}\"", seconds,
                  streak->tries, why);
  }

  void OnNotice(const v1::OperatorNotice& notice) {
    if (const auto lasted = outage_.Ended(Outage::Clock::now())) {
      logging::Info("operator reached again seconds={}", lasted->count());
    }
    session_.OnNotice(notice);
  }

  asio::io_context* const loop_;
  const std::string target_;
  const bool secure_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::shared_ptr<grpc::Channel> channel_;
  OperatorSession session_;
  asio::steady_timer retry_;
  asio::steady_timer patience_;  // with an attempt to connect
  std::unique_ptr<v1::OperatorLink::Stub> stub_;
  std::shared_ptr<CallsInFlight> calls_;
  std::shared_ptr<bool> alive_;  // tasks that gRPC's threads posted may run after Stop
  std::shared_ptr<OperatorStream> stream_;
  Outage outage_;
  FailedTries record_;  // asking it
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
