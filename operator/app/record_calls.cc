#include "operator/app/record_calls.h"

#include <fmt/format.h>

namespace ringmaster::app {
namespace {

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

}  // namespace

RecordCalls::RecordCalls(controllers::QuorumRecordStore* records) : records_(records) {
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

void RecordCalls::Post(grpc::CallbackServerContext* context, const v1::RecordRequest* request,
                       v1::RecordReply* reply, grpc::ServerUnaryReactor* reactor) {
  grpc::Status refused(grpc::StatusCode::UNAVAILABLE, "the operator stops");
  {
    const sync::MutexLock lock(&mu_);
    if (!stopped_) {
      if (queue_.Add(request->job_uid(), {context, request, reply, reactor})) {
        wake_.NotifyOne();
        return;
      }
      refused = {
          grpc::StatusCode::RESOURCE_EXHAUSTED,
          fmt::format("job {}/{} has {} messages for its record waiting already, or all jobs "
                      "together {}",
                      request->job_namespace(), request->job_name(), kMostOfAJob, kMost)};
    }
  }
  reactor->Finish(refused);
}

void RecordCalls::Stop() {
  {
    const sync::MutexLock lock(&mu_);
    stopped_ = true;
  }
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void RecordCalls::Run(const std::stop_token& stop) {
  while (const auto call = Next(stop)) {
    Answer(call->second);
    const sync::MutexLock lock(&mu_);
    queue_.Done(call->first);
    wake_.NotifyAll();
  }
}

std::optional<std::pair<std::string, RecordCalls::Call>> RecordCalls::Next(
    const std::stop_token& stop) {
  const sync::MutexLock lock(&mu_);
  while (true) {
    if (auto call = queue_.Take()) return call;
    // Other calls that wait belong to jobs for which another thread is answering a call now; that
    // thread continues with them.
    if (stop.stop_requested()) return std::nullopt;
    wake_.Wait(&mu_, stop);
  }
}

void RecordCalls::Answer(const Call& call) {
  // The client has given up, so writing its vote would only delay others.
  if (call.context->IsCancelled()) return call.reactor->Finish(grpc::Status::CANCELLED);
  const controllers::JobIdentity job{call.request->job_namespace(), call.request->job_name(),
                                     call.request->job_uid()};
  const auto answer = records_->Answer(job, call.request->message());
  if (!answer) return call.reactor->Finish(ToStatus(answer.error()));
  call.reply->set_message(*answer);
  call.reactor->Finish(grpc::Status::OK);
}

}  // namespace ringmaster::app
