#include "operator/app/operator_link.h"

#include <fmt/format.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "common/logging/log.h"
#include "common/rpc/connection_limits.h"
#include "common/rpc/keep_alive.h"
#include "common/rpc/message_size.h"
#include "common/sync/mutex.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "operator.grpc.pb.h"
#include "operator/api/object_key.h"
#include "operator/app/notice_proto.h"
#include "operator/app/record_calls.h"
#include "operator/app/report_intake.h"
#include "operator/app/waiting_notices.h"

namespace ringmaster::app {
namespace {

using controllers::SidecarRegistry;
using planner::Notice;

// These limits keep idle connections and streams from piling up: a sidecar registers at once, and
// has a stream as long as it is connected.
constexpr std::chrono::seconds kRegisterWithin{5};
constexpr int kIdleMs = 60'000;

std::int64_t UnixMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

using Peer = std::shared_ptr<const grpc::AuthContext>;

// Why the peer may not speak for this job; empty if it may. A null peer means no TLS, so nothing is
// checked.
std::string WhyNotItsJob(const Peer& peer, const std::string& job_uid) {
  if (peer == nullptr || tls::HasName(peer, tls::JobName(job_uid))) return "";
  std::string names;
  for (const auto& name : peer->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME)) {
    names += (names.empty() ? "" : ", ") + std::string(name.data(), name.size());
  }
  return fmt::format("job_uid is \"{}\", the certificate is for {}", job_uid,
                     names.empty() ? "nobody" : names);
}

// The writing half of one stream. It may outlive the stream, because the registry holds it.
//
// A sidecar that does not read can't make the operator's memory grow: notices wait as they are,
// views shared, and only the one that is being written is encoded.
class StreamSink : public controllers::NoticeSink {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::SidecarReport, v1::OperatorNotice>;

  // A stream on which nothing has been read for `read_within` ends when it is written to.
  StreamSink(Reactor* reactor, grpc::CallbackServerContext* context,
             std::chrono::milliseconds read_within)
      : read_within_(read_within), reactor_(reactor), context_(context) {}

  void Send(const Notice& notice) override {
    const sync::MutexLock lock(&mu_);
    if (reactor_ == nullptr) return;
    waiting_.Add(notice);
    if (!written_since_) return WriteNext();
    if (std::chrono::steady_clock::now() - *written_since_ > read_within_) GiveUp();
  }
  void Replaced() override {
    Close({grpc::StatusCode::ABORTED, "another stream of this pod has taken its place"});
  }

  // The first message, before the registry knows this sink.
  void Welcome(v1::OperatorNotice welcome) {
    const sync::MutexLock lock(&mu_);
    if (reactor_ != nullptr) Write(std::move(welcome));
  }
  void OnWritten(bool ok) {
    const sync::MutexLock lock(&mu_);
    written_since_.reset();
    if (ok && reactor_ != nullptr) WriteNext();
  }
  void Close(const grpc::Status& status) {
    const sync::MutexLock lock(&mu_);
    Finish(status);
  }

 private:
  void WriteNext() REQUIRES(mu_) {
    if (auto message = waiting_.Next()) Write(std::move(*message));
  }
  void Write(v1::OperatorNotice notice) REQUIRES(mu_) {
    writing_ = std::move(notice);
    AddTimeLeft(UnixMs(), &writing_);
    written_since_ = std::chrono::steady_clock::now();
    reactor_->StartWrite(&writing_);
  }
  void GiveUp() REQUIRES(mu_) {
    logging::Warn("stream ended: its sidecar doesn't read seconds={}",
                  std::chrono::duration_cast<std::chrono::seconds>(read_within_).count());
    // A status would wait behind the message that nobody reads.
    context_->TryCancel();
    Finish(grpc::Status::CANCELLED);
  }
  void Finish(const grpc::Status& status) REQUIRES(mu_) {
    if (reactor_ != nullptr) reactor_->Finish(status);
    reactor_ = nullptr;
    waiting_ = {};
  }

  const std::chrono::milliseconds read_within_;
  sync::Mutex mu_;
  Reactor* reactor_ GUARDED_BY(mu_);  // null once the stream ends
  // Lives at least as long as `reactor_` is not null.
  grpc::CallbackServerContext* const context_;
  WaitingNotices waiting_ GUARDED_BY(mu_);
  v1::OperatorNotice writing_ GUARDED_BY(mu_);
  std::optional<std::chrono::steady_clock::time_point> written_since_ GUARDED_BY(mu_);
};

// The open streams, which are told when the operator stops.
class OpenStreams {
 public:
  // Returns false if the operator is already stopping.
  bool Add(const std::shared_ptr<StreamSink>& sink) {
    const sync::MutexLock lock(&mu_);
    if (closed_) return false;
    std::erase_if(sinks_, [](const auto& weak) { return weak.expired(); });
    sinks_.push_back(sink);
    return true;
  }
  void CloseAll(const grpc::Status& status) {
    std::vector<std::weak_ptr<StreamSink>> sinks;
    {
      const sync::MutexLock lock(&mu_);
      closed_ = true;
      sinks.swap(sinks_);
    }
    for (const auto& weak : sinks) {
      if (const auto sink = weak.lock()) sink->Close(status);
    }
  }

 private:
  sync::Mutex mu_;
  bool closed_ GUARDED_BY(mu_) = false;
  std::vector<std::weak_ptr<StreamSink>> sinks_ GUARDED_BY(mu_);
};

grpc::Status Stopping() {
  return {grpc::StatusCode::UNAVAILABLE, "the operator stops: connect again, another takes over"};
}

class Connection final : public StreamSink::Reactor {
 public:
  Connection(SidecarRegistry* registry, OpenStreams* streams, const Peer& peer,
             grpc::CallbackServerContext* context, std::chrono::milliseconds read_within)
      : sink_(std::make_shared<StreamSink>(this, context, read_within)),
        intake_(registry,
                {.why_not_its_job = [peer](const auto& uid) { return WhyNotItsJob(peer, uid); },
                 .on_accepted = [this](auto welcome) { OnAccepted(std::move(welcome)); },
                 .sink = sink_}) {
    if (streams->Add(sink_)) {
      AwaitRegistration();
      StartRead(&report_);
    } else {
      sink_->Close(Stopping());
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return sink_->Close(grpc::Status::OK);
    if (const grpc::Status taken = Take(); !taken.ok()) {
      logging::Warn("sidecar's report refused error={}", logging::Value(taken.error_message()));
      return sink_->Close(taken);
    }
    StartRead(&report_);
  }
  void OnWriteDone(bool ok) override { sink_->OnWritten(ok); }
  void OnCancel() override { sink_->Close(grpc::Status::CANCELLED); }
  void OnDone() override {
    intake_.End();
    delete this;
  }

 private:
  // The callback may run after this object is destroyed.
  void AwaitRegistration() {
    patience_.Set(
        std::chrono::system_clock::now() + kRegisterWithin,
        [sink = sink_, registered = registered_](bool is_over) {
          if (!is_over || *registered) return;
          sink->Close({grpc::StatusCode::DEADLINE_EXCEEDED,
                       fmt::format("no registration came within {} s", kRegisterWithin.count())});
        });
  }

  grpc::Status Take() {
    const ReportIntake::Result taken = intake_.Take(report_);
    if (taken.outcome == ReportIntake::Outcome::kTaken) return grpc::Status::OK;
    const bool unknown = taken.outcome == ReportIntake::Outcome::kUnknownPod;
    return {unknown ? grpc::StatusCode::NOT_FOUND : grpc::StatusCode::INVALID_ARGUMENT, taken.why};
  }
  void OnAccepted(v1::OperatorNotice welcome) {
    sink_->Welcome(std::move(welcome));
    *registered_ = true;
    patience_.Cancel();
  }

  const std::shared_ptr<StreamSink> sink_;
  const std::shared_ptr<std::atomic<bool>> registered_ = std::make_shared<std::atomic<bool>>(false);
  grpc::Alarm patience_;
  v1::SidecarReport report_;
  ReportIntake intake_;
};

class Server final : public OperatorLinkServer, public v1::OperatorLink::CallbackService {
 public:
  Server(SidecarRegistry* registry, controllers::QuorumRecordStore* records,
         const std::optional<tls::Files>& tls, std::chrono::milliseconds read_within)
      : registry_(registry), tls_(tls), read_within_(read_within), record_calls_(records) {}
  ~Server() override { Stop(); }

  kube::Result<void> Listen(const std::string& listen) {
    grpc::ServerBuilder builder;
    int port = 0;
    if (!tls_ && !IsLocalAddress(listen)) {
      logging::Warn("no TLS, any client can pass for a sidecar listen={}", listen);
    }
    builder.AddListeningPort(listen,
                             tls_ ? tls::ServerCredentials(*tls_, {.suffix = tls::kJobDomain})
                                  : grpc::InsecureServerCredentials(),
                             &port);
    // Without this option two operators could listen on one port, and each would have half of the
    // sidecars.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    rpc::KeepAlive(&builder);
    rpc::LimitMessages(&builder);
    rpc::LimitConnections(&builder);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return tl::unexpected(kube::Error{
          .code = kube::ErrorCode::kUnavailable,
          .message = fmt::format("can't listen on \"{}\": the address is in use or not ours; "
                                 "allowed: host:port (port 0: any) or unix:/path",
                                 listen)});
    }
    target_ = listen;
    const std::size_t colon = listen.rfind(':');
    if (listen.rfind("unix:", 0) != 0 && colon != std::string::npos) {
      target_ = listen.substr(0, colon + 1) + std::to_string(port);
    }
    return {};
  }

  std::string target() const override { return target_; }

  void Stop() override {
    if (server_ == nullptr) return;
    streams_.CloseAll(Stopping());
    server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
    record_calls_.Stop();
    server_->Wait();
    server_.reset();
  }

  grpc::ServerBidiReactor<v1::SidecarReport, v1::OperatorNotice>* Attend(
      grpc::CallbackServerContext* context) override {
    return new Connection(registry_, &streams_, PeerOf(context), context,
                          read_within_);  // deletes itself in OnDone
  }
  grpc::ServerUnaryReactor* Record(grpc::CallbackServerContext* context,
                                   const v1::RecordRequest* request,
                                   v1::RecordReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (const grpc::Status may = MayTouchRecord(PeerOf(context), *request); !may.ok()) {
      logging::Warn("record message refused error={}", logging::Value(may.error_message()));
      reactor->Finish(may);
      return reactor;
    }
    record_calls_.Post(context, request, reply, reactor);
    return reactor;
  }

 private:
  // The uid alone would open the record of any job, whatever namespace and name the request has.
  grpc::Status MayTouchRecord(const Peer& peer, const v1::RecordRequest& request) const {
    if (std::string wrong = WhyNotItsJob(peer, request.job_uid()); !wrong.empty()) {
      return {grpc::StatusCode::PERMISSION_DENIED, wrong};
    }
    const std::string key = api::KeyText(request.job_namespace(), request.job_name());
    if (registry_->KnowsJob(key, request.job_uid())) return grpc::Status::OK;
    return {
        grpc::StatusCode::UNAVAILABLE,
        fmt::format("the operator knows no job {} with uid \"{}\" (yet)", key, request.job_uid())};
  }
  Peer PeerOf(grpc::CallbackServerContext* context) const {
    return tls_ ? context->auth_context() : nullptr;
  }

  SidecarRegistry* const registry_;
  const std::optional<tls::Files> tls_;
  const std::chrono::milliseconds read_within_;
  OpenStreams streams_;
  RecordCalls record_calls_;
  std::unique_ptr<grpc::Server> server_;
  std::string target_;
};

}  // namespace

bool IsLocalAddress(const std::string& address) {
  if (address.rfind("unix:", 0) == 0) return true;
  const std::string host = address.substr(0, address.rfind(':'));
  return host.rfind("127.", 0) == 0 || host == "localhost" || host == "[::1]";
}

kube::Result<std::unique_ptr<OperatorLinkServer>> OperatorLinkServer::Start(
    const std::string& listen, SidecarRegistry* registry, controllers::QuorumRecordStore* records,
    const std::optional<tls::Files>& tls, std::chrono::milliseconds read_within) {
  auto server = std::make_unique<Server>(registry, records, tls, read_within);
  if (auto listening = server->Listen(listen); !listening) {
    return tl::unexpected(listening.error());
  }
  return server;
}

}  // namespace ringmaster::app
