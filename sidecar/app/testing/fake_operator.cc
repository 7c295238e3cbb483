#include "sidecar/app/testing/fake_operator.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <optional>
#include <set>

#include "common/membership/message_json.h"
#include "common/membership/quorum_record.h"
#include "common/membership/view_json.h"
#include "common/rpc/keep_alive.h"
#include "common/rpc/message_size.h"
#include "common/sync/mutex.h"
#include "common/tls/certificate.h"
#include "common/tls/credentials.h"
#include "operator.grpc.pb.h"

namespace ringmaster::app::testing {

using SteadyTime = std::chrono::steady_clock::time_point;
using ServerStream = grpc::ServerReaderWriter<v1::OperatorNotice, v1::SidecarReport>;

class FakeOperator::Impl final : public v1::OperatorLink::Service {
 public:
  Impl(std::string path, int pods, uint32_t min_pods, std::string tls_dir)
      : path_(std::move(path)), pods_(pods), min_pods_(min_pods), tls_dir_(std::move(tls_dir)) {}

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(
        "unix:" + path_, tls_dir_.empty() ? grpc::InsecureServerCredentials()
                                          : tls::ServerCredentials(tls::FilesIn(tls_dir_),
                                                                   {.suffix = tls::kJobDomain}));
    rpc::KeepAlive(&builder);
    rpc::LimitMessages(&builder);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
    unlink(path_.c_str());
  }

  grpc::Status Attend(grpc::ServerContext*, ServerStream* stream) override {
    v1::SidecarReport report;
    std::string uid;
    while (stream->Read(&report)) {
      sync::MutexLock lock(&mu_);
      if (report.has_registration()) {
        uid = report.registration().pod_uid();
        streams_[uid] = stream;
        http_[uid] = report.registration().http_address();
        Welcome(stream);
      } else {
        Take(uid, report);
      }
    }
    sync::MutexLock lock(&mu_);
    if (streams_[uid] == stream) streams_.erase(uid);
    return grpc::Status::OK;
  }

  grpc::Status Record(grpc::ServerContext*, const v1::RecordRequest* request,
                      v1::RecordReply* reply) override {
    sync::MutexLock lock(&mu_);
    auto message = membership::DecodeMessage(request->message());
    if (!message || !record_) return {grpc::StatusCode::FAILED_PRECONDITION, "no record"};
    membership::RecordResult result = membership::AnswerAsRecord(*record_, *message);
    record_ = result.state;
    reply->set_message(membership::EncodeMessage(result.answer));
    return grpc::Status::OK;
  }

  void Drain(const std::vector<std::string>& pods, const std::string& reason) {
    v1::OperatorNotice notice;
    for (const std::string& pod : pods) notice.mutable_drain()->add_pod_uids(pod);
    notice.mutable_drain()->set_reason(reason);
    sync::MutexLock lock(&mu_);
    for (auto& [uid, stream] : streams_) stream->Write(notice);
  }

  mutable sync::Mutex mu_;
  std::map<std::string, std::string> http_ GUARDED_BY(mu_);
  std::set<std::string> finished_ GUARDED_BY(mu_);
  std::vector<int> exit_codes_ GUARDED_BY(mu_);
  std::map<uint64_t, SteadyTime> reported_ GUARDED_BY(mu_);

 private:
  void Welcome(ServerStream* stream) REQUIRES(mu_) {
    v1::OperatorNotice notice;
    notice.mutable_accepted()->set_message("ok");
    stream->Write(notice);
    notice.mutable_target()->set_min_pods(min_pods_);
    notice.mutable_target()->set_expected_pods(static_cast<uint32_t>(pods_));
    stream->Write(notice);
    if (record_) SendViewDecided(stream);
  }

  void Take(const std::string& uid, const v1::SidecarReport& report) REQUIRES(mu_) {
    if (report.has_readiness() && report.readiness().ready() && !record_) {
      auto candidate = membership::DecodeCandidate(report.readiness().member());
      if (!candidate) return;
      ready_[uid] = *candidate;
      if (static_cast<int>(ready_.size()) < pods_) return;
      std::vector<membership::Candidate> candidates;
      for (auto& [pod, ready] : ready_) candidates.push_back(ready);
      record_ = membership::NewRecord(std::make_shared<const membership::View>(
          membership::BootstrapView(candidates, min_pods_)));
      for (auto& [pod, stream] : streams_) SendViewDecided(stream);
    } else if (report.has_view()) {
      auto view = membership::DecodeView(report.view().view());
      if (view) reported_.try_emplace(view->epoch, std::chrono::steady_clock::now());
    } else if (report.has_finished()) {
      finished_.insert(uid);
    } else if (report.has_worker_exit()) {
      exit_codes_.push_back(report.worker_exit().exit_code());
    }
  }

  void SendViewDecided(ServerStream* stream) REQUIRES(mu_) {
    v1::OperatorNotice notice;
    notice.mutable_view_decided()->set_view(membership::EncodeView(*record_->view));
    stream->Write(notice);
  }

  const std::string path_;
  const int pods_;
  const uint32_t min_pods_;
  const std::string tls_dir_;
  std::unique_ptr<grpc::Server> server_;
  std::map<std::string, ServerStream*> streams_ GUARDED_BY(mu_);
  std::map<std::string, membership::Candidate> ready_ GUARDED_BY(mu_);
  std::optional<membership::QuorumRecord> record_ GUARDED_BY(mu_);
};

FakeOperator::FakeOperator(std::string socket_path, int pods, uint32_t min_pods,
                           std::string tls_dir)
    : impl_(std::make_unique<Impl>(std::move(socket_path), pods, min_pods, std::move(tls_dir))) {}
FakeOperator::~FakeOperator() { impl_->Stop(); }
void FakeOperator::Start() { impl_->Start(); }
void FakeOperator::Stop() { impl_->Stop(); }
void FakeOperator::Drain(const std::vector<std::string>& pods, const std::string& reason) {
  impl_->Drain(pods, reason);
}

std::string FakeOperator::HttpOf(const std::string& pod_uid) {
  sync::MutexLock lock(&impl_->mu_);
  return impl_->http_[pod_uid];
}
int FakeOperator::finished() const {
  sync::MutexLock lock(&impl_->mu_);
  return static_cast<int>(impl_->finished_.size());
}
std::vector<int> FakeOperator::exit_codes() const {
  sync::MutexLock lock(&impl_->mu_);
  return impl_->exit_codes_;
}
SteadyTime FakeOperator::ReportedAfter(uint64_t epoch) const {
  sync::MutexLock lock(&impl_->mu_);
  auto it = impl_->reported_.upper_bound(epoch);
  return it == impl_->reported_.end() ? SteadyTime{} : it->second;
}

}  // namespace ringmaster::app::testing
