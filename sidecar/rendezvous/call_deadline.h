// Ends a unary call that is not answered in time.
//
// gRPC's own deadline goes with the call, for the server to see, but nothing here rests on it: gRPC
// 1.51 waits for its timers until a moment of the wall clock, so after a step of that clock back by
// a day no deadline passes for a day.
//
// Thread rule: Begin and End on the loop; the rest on any thread.
#pragma once

#include <fmt/format.h>
#include <grpcpp/client_context.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace ringmaster::rendezvous {

class CallDeadline {
 public:
  // `call` has a member `context` and lives at least until gRPC has called back.
  template <typename Call>
  static std::shared_ptr<CallDeadline> Begin(asio::io_context* loop,
                                             const std::shared_ptr<Call>& call,
                                             std::chrono::milliseconds patience) {
    call->context.set_deadline(std::chrono::system_clock::now() + patience);
    auto deadline = std::make_shared<CallDeadline>(loop, patience);
    deadline->timer_.async_wait(
        [deadline, weak = std::weak_ptr<Call>(call)](std::error_code cancelled) {
          const auto unanswered = weak.lock();
          if (cancelled || unanswered == nullptr) return;
          deadline->passed_ = true;
          unanswered->context.TryCancel();
        });
    return deadline;
  }
  CallDeadline(asio::io_context* loop, std::chrono::milliseconds patience)
      : patience_(patience), timer_(*loop, patience) {}

  // The call has ended.
  void End() { timer_.cancel(); }
  // Whether this is how a call ends that was not answered in time.
  bool Passed(const grpc::Status& status) const {
    return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED || (!status.ok() && passed_);
  }
  // Why the call has failed, for people.
  std::string Why(const grpc::Status& status) const {
    return Passed(status) ? fmt::format("no answer within {} ms", patience_.count())
                          : status.error_message();
  }

 private:
  const std::chrono::milliseconds patience_;
  asio::steady_timer timer_;
  std::atomic<bool> passed_{false};
};

}  // namespace ringmaster::rendezvous
