// Answers messages for the quorum records, outside gRPC's threads because each waits for the API
// server. Calls of one job, or a slow API call for it, don't delay other jobs.
//
// Thread rule: Post from any thread, Stop once.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "operator.pb.h"
#include "operator/app/fair_queue.h"
#include "operator/controllers/quorum_record_store.h"

namespace ringmaster::app {

class RecordCalls {
 public:
  // A job has one coordinator, and its members campaign rarely, so more calls than this are an
  // overload.
  static constexpr std::size_t kMostOfAJob = 64;
  static constexpr std::size_t kMost = 16'384;
  static constexpr int kThreads = 8;

  explicit RecordCalls(controllers::QuorumRecordStore* records);
  ~RecordCalls() { Stop(); }

  // Finishes `reactor`: with the answer, with RESOURCE_EXHAUSTED if too many calls of the job wait,
  // or with UNAVAILABLE if the operator stops.
  void Post(grpc::CallbackServerContext* context, const v1::RecordRequest* request,
            v1::RecordReply* reply, grpc::ServerUnaryReactor* reactor);
  // Answers the waiting calls, then returns.
  void Stop();

 private:
  struct Call {
    grpc::CallbackServerContext* context;
    const v1::RecordRequest* request;
    v1::RecordReply* reply;
    grpc::ServerUnaryReactor* reactor;
  };

  void Run(const std::stop_token& stop);
  // nullopt: stopped, and no call waits any more.
  std::optional<std::pair<std::string, Call>> Next(const std::stop_token& stop);
  void Answer(const Call& call);

  controllers::QuorumRecordStore* const records_;
  sync::Mutex mu_;
  sync::StoppableCondVar wake_;
  FairQueue<Call> queue_ GUARDED_BY(mu_){kMostOfAJob, kMost};
  bool stopped_ GUARDED_BY(mu_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace ringmaster::app
