#include "operator/app/operator_link.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <deque>
#include <nlohmann/json.hpp>
#include <thread>

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

namespace ringmaster::app {
namespace {

using controllers::SidecarRegistry;
using planner::Notice;

v1::OperatorNotice ToProto(const Notice& notice) {
  v1::OperatorNotice out;
  if (const auto* found = std::get_if<planner::ViewDecidedNotice>(&notice)) {
    out.mutable_view_decided()->set_view(membership::EncodeView(*found->view));
  } else if (const auto* drain = std::get_if<planner::DrainNotice>(&notice)) {
    for (const std::string& uid : drain->pod_uids) out.mutable_drain()->add_pod_uids(uid);
    out.mutable_drain()->set_reason(drain->reason);
    out.mutable_drain()->set_deadline_unix_ms(drain->deadline_unix_ms);
  } else if (const auto* gone = std::get_if<planner::PodGoneNotice>(&notice)) {
    out.mutable_pod_gone()->set_pod_uid(gone->pod_uid);
    out.mutable_pod_gone()->set_reason(gone->reason);
    out.mutable_pod_gone()->set_proof(gone->proof);
  } else if (const auto* target = std::get_if<planner::TargetNotice>(&notice)) {
    out.mutable_target()->set_min_pods(target->min_pods);
    out.mutable_target()->set_expected_pods(target->expected_pods);
  } else if (const auto* finish = std::get_if<planner::FinishNotice>(&notice)) {
    out.mutable_finish()->set_reason(finish->reason);
  } else if (const auto* recover = std::get_if<planner::RecoverNotice>(&notice)) {
    out.mutable_recover()->set_lineage(recover->lineage);
    out.mutable_recover()->set_fresh_workers(recover->fresh_workers);
  }
  return out;
}

// Figures about a rebuild; nullopt for anything that is none.
std::optional<job::Rebuild> ParseRebuild(const std::string& text) {
  return job::RebuildFromJson(nlohmann::json::parse(text, nullptr, false));
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
      StartRead(&report_);
    } else {
      sink_->Close(Stopping());
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return sink_->Close(grpc::Status::OK);
    if (const std::string wrong = Take(); !wrong.empty()) {
      spdlog::warn("sidecar's report refused error={}", logging::Value(wrong));
      return sink_->Close({grpc::StatusCode::INVALID_ARGUMENT, wrong});
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
  // Empty, or what is wrong with the report.
  std::string Take() {
    if (report_.has_registration()) return Register(report_.registration());
    if (id_ == 0) return "the first report has to be a registration";
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
      case v1::SidecarReport::kRecovery:
        return OnRecoveryReport(report_.recovery());
      default:
        return "";  // of a newer sidecar
    }
  }
  std::string Register(const v1::Registration& registration) {
    if (id_ != 0) return "a second registration in one stream";
    if (registration.job_uid().empty() || registration.pod_uid().empty() ||
        registration.job_name().empty()) {
      return "job_name, job_uid and pod_uid are required in a registration";
    }
    if (std::string wrong = WhyNotItsJob(peer_, registration.job_uid()); !wrong.empty()) {
      return wrong;
    }
    v1::OperatorNotice accepted;
    accepted.mutable_accepted()->set_message("welcome " + registration.pod_name());
    sink_->Push(std::move(accepted));
    id_ = registry_->Connect(job::FromProto(registration), sink_);
    return "";
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
  v1::SidecarReport report_;
  SidecarRegistry::ConnectionId id_ = 0;
};

grpc::Status ToStatus(const kube::Error& error) {
  switch (error.code) {
    case kube::ErrorCode::kNotFound:
      return {grpc::StatusCode::NOT_FOUND, error.message};
    case kube::ErrorCode::kInvalid:
      return {grpc::StatusCode::INVALID_ARGUMENT, error.message};
    case kube::ErrorCode::kConflict:
      return {grpc::StatusCode::ABORTED, error.message};
    case kube::ErrorCode::kInternal:
      return {grpc::StatusCode::INTERNAL, error.message};
    default:
      return {grpc::StatusCode::UNAVAILABLE, error.message};
  }
}

// Runs record votes off gRPC's threads: one waits for the API server.
class RecordWorker {
 public:
  explicit RecordWorker(controllers::QuorumRecordStore* records)
      : records_(records), thread_([this](std::stop_token stop) { Run(stop); }) {}
  ~RecordWorker() { Stop(); }

  void Post(const v1::RecordRequest* request, v1::RecordReply* reply,
            grpc::ServerUnaryReactor* reactor) {
    {
      const sync::MutexLock lock(&mu_);
      if (!stopped_) {
        queue_.push_back({request, reply, reactor});
        wake_.NotifyOne();
        return;
      }
    }
    reactor->Finish({grpc::StatusCode::UNAVAILABLE, "the operator stops"});
  }
  void Stop() {
    {
      const sync::MutexLock lock(&mu_);
      stopped_ = true;
    }
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Call {
    const v1::RecordRequest* request;
    v1::RecordReply* reply;
    grpc::ServerUnaryReactor* reactor;
  };

  void Run(std::stop_token stop) {
    while (const auto call = Next(stop)) Answer(*call);
  }
  // Nullopt: stopped, and nothing waits any more.
  std::optional<Call> Next(const std::stop_token& stop) {
    const sync::MutexLock lock(&mu_);
    while (queue_.empty()) {
      if (stop.stop_requested()) return std::nullopt;
      wake_.Wait(&mu_, stop);
    }
    const Call call = queue_.front();
    queue_.pop_front();
    return call;
  }
  void Answer(const Call& call) {
    const controllers::JobIdentity job{call.request->job_namespace(), call.request->job_name(),
                                       call.request->job_uid()};
    const auto answer = records_->Answer(job, call.request->message());
    if (!answer) return call.reactor->Finish(ToStatus(answer.error()));
    call.reply->set_message(*answer);
    call.reactor->Finish(grpc::Status::OK);
  }

  controllers::QuorumRecordStore* const records_;
  sync::Mutex mu_;
  sync::StoppableCondVar wake_;
  std::deque<Call> queue_ GUARDED_BY(mu_);
  bool stopped_ GUARDED_BY(mu_) = false;
  std::jthread thread_;
};

class Server final : public OperatorLinkServer, public v1::OperatorLink::CallbackService {
 public:
  Server(SidecarRegistry* registry, controllers::QuorumRecordStore* records,
         const std::optional<tls::Files>& tls)
      : registry_(registry), tls_(tls), worker_(records) {}
  ~Server() override { Stop(); }

  kube::Result<void> Listen(const std::string& listen) {
    grpc::ServerBuilder builder;
    int port = 0;
    if (!tls_ && !IsLocalAddress(listen)) {
      spdlog::warn("without TLS everybody who reaches the port may pass for a sidecar listen={}",
                   listen);
    }
    builder.AddListeningPort(listen,
                             tls_ ? tls::ServerCredentials(*tls_, {.suffix = tls::kJobDomain})
                                  : grpc::InsecureServerCredentials(),
                             &port);
    // Two operators on one port would each see half of the sidecars.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    rpc::KeepAlive(&builder);
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
    worker_.Stop();
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
    worker_.Post(request, reply, reactor);
    return reactor;
  }

 private:
  Peer PeerOf(grpc::CallbackServerContext* context) const {
    return tls_ ? context->auth_context() : nullptr;
  }

  SidecarRegistry* const registry_;
  const std::optional<tls::Files> tls_;
  OpenStreams streams_;
  RecordWorker worker_;
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
