#include "operator/app/operator_link.h"

#include <fmt/format.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <deque>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/fields/parse.h"
#include "common/job/facts_proto.h"
#include "common/job/rebuild.h"
#include "common/logging/log.h"
#include "common/membership/message_json.h"
#include "common/membership/view_json.h"
#include "common/rpc/keep_alive.h"
#include "common/sync/mutex.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "operator.grpc.pb.h"
#include "operator/app/notice_proto.h"
#include "operator/app/record_calls.h"

namespace ringmaster::app {
namespace {

using controllers::SidecarRegistry;
using planner::Notice;

// Of a connection, and a sidecar has one: its stream, and the record calls of its campaigns.
constexpr int kMostStreams = 32;
constexpr int kMostMetadata = 16 << 10;
// A view of some thousand pods.
constexpr int kMostBytes = 4 << 20;
// So that connections and streams that do nothing don't add up: a sidecar registers at once, and
// has a stream as long as it has a connection.
constexpr std::chrono::seconds kRegisterWithin{5};
constexpr int kIdleMs = 60'000;
constexpr int kHandshakeMs = 30'000;

// Figures about a rebuild; nullopt for anything that is none.
std::optional<job::Rebuild> ParseRebuild(const std::string& text) {
  return job::RebuildFromJson(fields::ParseOrDiscard(text));
}

std::vector<job::Stall> ParseStalls(const std::string& text) {
  return job::StallsFromJson(fields::ParseOrDiscard(text));
}

grpc::Status Invalid(const std::string& why) {
  return why.empty() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, why);
}

// The cache may lag behind a pod that has just been made: its sidecar dials again, and again.
grpc::Status UnknownPod(const v1::Registration& registration) {
  return {
      grpc::StatusCode::NOT_FOUND,
      fmt::format("pod_name is \"{}\", pod_uid is \"{}\": the operator knows no such pod of job "
                  "{}/{} (yet)",
                  registration.pod_name(), registration.pod_uid(), registration.job_namespace(),
                  registration.job_name())};
}

using Peer = std::shared_ptr<const grpc::AuthContext>;

// Empty, or why the peer may not speak for this job. No peer: there is no TLS to ask.
std::string WhyNotItsJob(const Peer& peer, const std::string& job_uid) {
  if (peer == nullptr || tls::HasName(peer, tls::JobName(job_uid))) return "";
  std::string names;
  for (const auto& name : peer->FindPropertyValues(GRPC_X509_SAN_PROPERTY_NAME)) {
    names += (names.empty() ? "" : ", ") + std::string(name.data(), name.size());
  }
  return fmt::format("job_uid is \"{}\", the certificate is for {}", job_uid,
                     names.empty() ? "nobody" : names);
}

// The writing half of one stream. It outlives the stream as long as the registry holds it.
class StreamSink : public controllers::NoticeSink {
 public:
  using Reactor = grpc::ServerBidiReactor<v1::SidecarReport, v1::OperatorNotice>;

  explicit StreamSink(Reactor* reactor) : reactor_(reactor) {}

  void Send(const Notice& notice) override { Push(ToProto(notice)); }
  void Replaced() override {
    Close({grpc::StatusCode::ABORTED, "another stream of this pod has taken its place"});
  }

  void Push(v1::OperatorNotice notice) {
    const sync::MutexLock lock(&mu_);
    if (reactor_ == nullptr) return;
    queue_.push_back(std::move(notice));
    if (queue_.size() == 1) reactor_->StartWrite(&queue_.front());
  }
  void OnWritten(bool ok) {
    const sync::MutexLock lock(&mu_);
    queue_.pop_front();
    if (ok && reactor_ != nullptr && !queue_.empty()) reactor_->StartWrite(&queue_.front());
  }
  void Close(const grpc::Status& status) {
    const sync::MutexLock lock(&mu_);
    if (reactor_ != nullptr) reactor_->Finish(status);
    reactor_ = nullptr;
  }

 private:
  sync::Mutex mu_;
  Reactor* reactor_ GUARDED_BY(mu_);                      // null once the stream ends
  std::deque<v1::OperatorNotice> queue_ GUARDED_BY(mu_);  // the first is being written
};

// The streams that stand, to tell them all when the operator stops.
class OpenStreams {
 public:
  // False: the operator stops already.
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
  Connection(SidecarRegistry* registry, OpenStreams* streams, Peer peer)
      : registry_(registry), peer_(std::move(peer)), sink_(std::make_shared<StreamSink>(this)) {
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
      spdlog::warn("sidecar's report refused error={}", logging::Value(taken.error_message()));
      return sink_->Close(taken);
    }
    StartRead(&report_);
  }
  void OnWriteDone(bool ok) override { sink_->OnWritten(ok); }
  void OnCancel() override { sink_->Close(grpc::Status::CANCELLED); }
  void OnDone() override {
    if (id_ != 0) registry_->Disconnect(id_);
    delete this;
  }

 private:
  // The call-back may come when this object is gone.
  void AwaitRegistration() {
    patience_.Set(
        std::chrono::system_clock::now() + kRegisterWithin,
        [sink = sink_, registered = registered_](bool is_over) {
          if (!is_over || *registered) return;
          sink->Close({grpc::StatusCode::DEADLINE_EXCEEDED,
                       fmt::format("no registration came within {} s", kRegisterWithin.count())});
        });
  }

  // OK, or what is wrong with the report.
  grpc::Status Take() {
    if (report_.has_registration()) return Register(report_.registration());
    if (id_ == 0) return Invalid("the first report has to be a registration");
    return Invalid(TakeReport());
  }
  std::string TakeReport() {
    switch (report_.kind_case()) {
      case v1::SidecarReport::kReadiness:
        return OnReadiness(report_.readiness());
      case v1::SidecarReport::kView:
        return OnView(report_.view());
      case v1::SidecarReport::kWorkerExit:
        registry_->OnWorkerExit(id_, job::FromProto(report_.worker_exit()));
        return "";
      case v1::SidecarReport::kFinished:
        registry_->OnFinished(id_, report_.finished().epoch());
        return "";
      case v1::SidecarReport::kHealth:
        registry_->OnHealth(id_, report_.health().able(),
                            std::chrono::milliseconds(report_.health().unable_ms()));
        return "";
      case v1::SidecarReport::kStalls:
        registry_->OnStalls(id_, ParseStalls(report_.stalls().stalls()));
        return "";
      case v1::SidecarReport::kRecovery:
        return OnRecoveryReport(report_.recovery());
      default:
        return "";  // of a newer sidecar
    }
  }
  std::string WhyNot(const v1::Registration& registration) const {
    if (id_ != 0) return "a second registration in one stream";
    if (registration.job_uid().empty() || registration.pod_uid().empty() ||
        registration.job_name().empty()) {
      return "job_name, job_uid and pod_uid are required in a registration";
    }
    if (std::string wrong = WhyNotItsJob(peer_, registration.job_uid()); !wrong.empty()) {
      return wrong;
    }
    return registry_->WhyNotConnect(job::FromProto(registration));
  }
  grpc::Status Register(const v1::Registration& registration) {
    if (const std::string wrong = WhyNot(registration); !wrong.empty()) return Invalid(wrong);
    if (!registry_->KnowsPodOf(job::FromProto(registration))) return UnknownPod(registration);
    v1::OperatorNotice accepted;
    accepted.mutable_accepted()->set_message("welcome " + registration.pod_name());
    sink_->Push(std::move(accepted));
    *registered_ = true;
    patience_.Cancel();
    id_ = registry_->Connect(job::FromProto(registration), sink_);
    return grpc::Status::OK;
  }
  std::string OnReadiness(const v1::Readiness& readiness) {
    membership::Candidate candidate;
    if (!readiness.member().empty()) {
      auto decoded = membership::DecodeCandidate(readiness.member());
      if (!decoded) return "readiness.member: " + decoded.error();
      candidate = std::move(*decoded);
    } else if (readiness.ready()) {
      return "readiness.member is required when ready";
    }
    registry_->OnReadiness(id_, readiness.ready(),
                           {readiness.missing_slots().begin(), readiness.missing_slots().end()},
                           std::move(candidate));
    return "";
  }
  std::string OnView(const v1::ViewReport& report) {
    membership::ViewPtr view;
    if (!report.view().empty()) {
      auto decoded = membership::DecodeView(report.view());
      if (!decoded) return "view: " + decoded.error();
      view = std::make_shared<const membership::View>(std::move(*decoded));
    }
    registry_->OnView(id_, std::move(view), ParseRebuild(report.rebuild()));
    return "";
  }
  std::string OnRecoveryReport(const v1::Recovery& recovery) {
    auto report = membership::DecodeReport(recovery.report());
    if (!report) return "recovery." + report.error();
    registry_->OnRecoveryReport(id_, std::move(*report));
    return "";
  }

  SidecarRegistry* const registry_;
  const Peer peer_;
  const std::shared_ptr<StreamSink> sink_;
  const std::shared_ptr<std::atomic<bool>> registered_ = std::make_shared<std::atomic<bool>>(false);
  grpc::Alarm patience_;
  v1::SidecarReport report_;
  SidecarRegistry::ConnectionId id_ = 0;
};

class Server final : public OperatorLinkServer, public v1::OperatorLink::CallbackService {
 public:
  Server(SidecarRegistry* registry, controllers::QuorumRecordStore* records,
         const std::optional<tls::Files>& tls)
      : registry_(registry), tls_(tls), record_calls_(records) {}
  ~Server() override { Stop(); }

  kube::Result<void> Listen(const std::string& listen) {
    grpc::ServerBuilder builder;
    int port = 0;
    if (!tls_ && !IsLocalAddress(listen)) {
      spdlog::warn("without TLS whatever reaches the port may pass for a sidecar listen={}",
                   listen);
    }
    builder.AddListeningPort(listen,
                             tls_ ? tls::ServerCredentials(*tls_, {.suffix = tls::kJobDomain})
                                  : grpc::InsecureServerCredentials(),
                             &port);
    // Two operators on one port would each see half of the sidecars.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    rpc::KeepAlive(&builder);
    builder.SetMaxReceiveMessageSize(kMostBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMostMetadata);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
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
    return new Connection(registry_, &streams_, PeerOf(context));  // deletes itself in OnDone
  }
  grpc::ServerUnaryReactor* Record(grpc::CallbackServerContext* context,
                                   const v1::RecordRequest* request,
                                   v1::RecordReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (std::string wrong = WhyNotItsJob(PeerOf(context), request->job_uid()); !wrong.empty()) {
      spdlog::warn("a message for the record is refused: {}", wrong);
      reactor->Finish({grpc::StatusCode::PERMISSION_DENIED, wrong});
      return reactor;
    }
    record_calls_.Post(context, request, reply, reactor);
    return reactor;
  }

 private:
  Peer PeerOf(grpc::CallbackServerContext* context) const {
    return tls_ ? context->auth_context() : nullptr;
  }

  SidecarRegistry* const registry_;
  const std::optional<tls::Files> tls_;
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
    const std::optional<tls::Files>& tls) {
  auto server = std::make_unique<Server>(registry, records, tls);
  if (auto listening = server->Listen(listen); !listening) {
    return tl::unexpected(listening.error());
  }
  return server;
}

}  // namespace ringmaster::app
