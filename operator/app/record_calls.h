// Answers messages for the quorum records, off gRPC's threads: each waits for the API server. One
// job's calls, or a slow API call for it, hold up no other job's.
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
  // A job has one coordinator, and its members campaign rarely: more calls than this are a flood.
  static constexpr std::size_t kMostOfAJob = 64;
  static constexpr std::size_t kMost = 16'384;
  static constexpr int kThreads = 8;

  explicit RecordCalls(controllers::QuorumRecordStore* records);
  ~RecordCalls() { Stop(); }

  // Finishes `reactor`: with the answer, RESOURCE_EXHAUSTED when the job has too many calls
  // waiting, or UNAVAILABLE when the operator stops.
  void Post(grpc::CallbackServerContext* context, const v1::RecordRequest* request,
            v1::RecordReply* reply, grpc::ServerUnaryReactor* reactor);
  // Answers what waits, then ends.
  void Stop();

 private:
  struct Call {
    grpc::CallbackServerContext* context;
    const v1::RecordRequest* request;
    v1::RecordReply* reply;
    grpc::ServerUnaryReactor* reactor;
  };

  void Run(const std::stop_token& stop);
  // Nullopt: stopped, and nothing waits any more.
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
