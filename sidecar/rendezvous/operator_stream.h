// One stream of a sidecar to the operator. Private to this folder.
//
// Thread rule: gRPC's threads call its reactions and its handlers; the rest on any thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"
#include "operator.grpc.pb.h"
#include "sidecar/rendezvous/operator_session.h"

namespace ringmaster::rendezvous {

// Owns itself until OnDone.
class OperatorStream final : public grpc::ClientBidiReactor<v1::SidecarReport, v1::OperatorNotice>,
                             public ReportSink {
 public:
  using NoticeHandler = std::function<void(const v1::OperatorNotice&)>;
  using DoneHandler = std::function<void(std::vector<QueuedReport> unsent, std::string why)>;

  static std::shared_ptr<OperatorStream> Open(v1::OperatorLink::Stub* stub, NoticeHandler notice,
                                              DoneHandler done) {
    auto stream =
        std::shared_ptr<OperatorStream>(new OperatorStream(std::move(notice), std::move(done)));
    stream->self_ = stream;
    {
      sync::MutexLock lock(&stream->mu_);
      stub->async()->Attend(&*stream->context_, stream.get());
    }
    stream->AddHold();  // writes come from the loop, outside of reactions
    stream->StartRead(&stream->incoming_);
    stream->StartCall();
    return stream;
  }

  bool Send(const QueuedReport& queued) override {
    sync::MutexLock lock(&mu_);
    if (handed_back_) return false;
    queue_.push_back(queued);
    if (!closed_ && !writing_) WriteNext();
    return true;
  }

  void HalfClose() {
    sync::MutexLock lock(&mu_);
    half_close_ = true;
    if (!closed_ && !writing_) WriteNext();
  }

  void Cancel() {
    sync::MutexLock lock(&mu_);
    if (context_) context_->TryCancel();
  }

  bool WaitDone(std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    sync::MutexLock lock(&mu_);
    while (!done_) {
      if (!ended_.WaitUntil(&mu_, deadline)) return done_;
    }
    return true;
  }

 private:
  OperatorStream(NoticeHandler notice, DoneHandler done)
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
    std::vector<QueuedReport> unsent;
    std::shared_ptr<OperatorStream> self;
    {
      sync::MutexLock lock(&mu_);
      for (QueuedReport& queued : queue_) {
        if (queued.must_arrive) unsent.push_back(std::move(queued));
      }
      queue_.clear();
      handed_back_ = true;
      self = std::move(self_);
      context_.reset();  // before the client may drop its channel, see calls_in_flight.h
    }
    on_done_(std::move(unsent), status.error_message());
    sync::MutexLock lock(&mu_);
    done_ = true;
    ended_.NotifyAll();
  }

  const NoticeHandler on_notice_;
  const DoneHandler on_done_;
  v1::OperatorNotice incoming_;
  std::shared_ptr<OperatorStream> self_;
  sync::Mutex mu_;
  sync::CondVar ended_;
  std::optional<grpc::ClientContext> context_ GUARDED_BY(mu_){std::in_place};
  std::deque<QueuedReport> queue_ GUARDED_BY(mu_);
  bool writing_ GUARDED_BY(mu_) = false;
  bool half_close_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;
  bool handed_back_ GUARDED_BY(mu_) = false;
  bool done_ GUARDED_BY(mu_) = false;
};

}  // namespace ringmaster::rendezvous
