#include "collectives/engine/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/element/element.h"

namespace ringmaster::engine {
namespace {

// When all ranks have unready operations and nobody anything new, rounds are repeated at these
// distances.
constexpr std::chrono::microseconds kFirstBackoff{200};
constexpr std::chrono::microseconds kLastBackoff{20000};

double Seconds(Engine::Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

Engine::Engine(Options options)
    : options_(std::move(options)),
      negotiator_(options_.fusion_bytes),
      has_state_(options_.has_state),
      thread_([this] { Loop(); }) {}

Engine::~Engine() { Close(); }

void Engine::Close() {
  if (!thread_.joinable()) return;
  std::shared_ptr<Communicator> communicator;
  {
    std::lock_guard lock(mu_);
    mail_.close = true;
    connecting_.request_stop();
    communicator = communicator_;
    wake_.notify_all();
  }
  user_tasks_.Interrupt(UINT64_MAX);
  if (communicator) communicator->Abort("the worker is closing");
  thread_.join();
}

// ---- From any thread
// ------------------------------------------------------------------------------------------------

void Engine::PostStop(uint64_t epoch) {
  std::shared_ptr<Communicator> communicator;
  {
    std::lock_guard lock(mu_);
    if (!mail_.stop || *mail_.stop < epoch) {
      if (!mail_.stop) mail_.stop_at = Clock::now();
      mail_.stop = epoch;
    }
    if (mail_.view && mail_.view->epoch <= epoch) mail_.view.reset();
    if (connecting_epoch_ != 0 && connecting_epoch_ <= epoch) connecting_.request_stop();
    if (communicator_ && communicator_->epoch() <= epoch) communicator = communicator_;
    wake_.notify_all();
  }
  user_tasks_.Interrupt(epoch);
  if (communicator) communicator->Abort("the view was stopped");
}

void Engine::PostView(View view) {
  std::lock_guard lock(mu_);
  if (mail_.view && mail_.view->epoch >= view.epoch) return;
  if (mail_.stop && *mail_.stop >= view.epoch) return;
  mail_.view = std::move(view);
  mail_.view_at = Clock::now();
  wake_.notify_all();
}

void Engine::PostDropped() {
  std::shared_ptr<Communicator> communicator;
  uint64_t epoch = 0;
  {
    std::lock_guard lock(mu_);
    mail_.dropped = true;
    mail_.view.reset();
    connecting_.request_stop();
    communicator = communicator_;
    epoch = std::max(membership_.epoch, connecting_epoch_);
    wake_.notify_all();
  }
  user_tasks_.Interrupt(epoch);
  if (communicator) communicator->Abort("the worker was dropped from the view");
}

void Engine::PostArmed(uint64_t epoch, bool armed) {
  std::lock_guard lock(mu_);
  mail_.armed[epoch] = armed;
  wake_.notify_all();
}

void Engine::PostEnd(Status why) {
  std::shared_ptr<Communicator> communicator;
  {
    std::lock_guard lock(mu_);
    if (!mail_.end) mail_.end = std::move(why);
    connecting_.request_stop();
    communicator = communicator_;
    wake_.notify_all();
  }
  user_tasks_.Interrupt(UINT64_MAX);
  if (communicator) communicator->Abort("the worker has left the view");
}

Status Engine::Submit(const std::shared_ptr<Operation>& operation) {
  std::lock_guard lock(mu_);
  if (ended_) return *ended_;
  const Request& request = operation->request;
  if (request.kind == Kind::kBroadcast && (request.root < 0 || request.root >= membership_.size)) {
    return {RM_ERR_INVALID, "broadcast '" + request.name + "': root is " +
                                std::to_string(request.root) + ", allowed is 0 to " +
                                std::to_string(membership_.size - 1)};
  }
  if (!in_flight_.insert(request.name).second) {
    if (request.kind == Kind::kStepEnd) return {RM_ERR_INVALID, "another thread is in rm_step_end"};
    return {RM_ERR_INVALID,
            "'" + request.name + "' is already in flight: wait for it, or use another name"};
  }
  mail_.submitted.push_back(operation);
  wake_.notify_one();
  return {};
}

Status Engine::AwaitEntered(Clock::time_point deadline) {
  const auto ended = [this] {
    std::lock_guard lock(mu_);
    return ended_;
  };
  std::optional<Status> why;
  const bool in_time = user_tasks_.Serve(
      [&] {
        if (entered_) return true;
        why = ended();
        return why.has_value();
      },
      deadline);
  if (why) return *why;
  if (!in_time)
    return {RM_ERR_TIMEOUT, "no view with this worker was installed before the deadline"};
  return {};
}

Status Engine::StepEnd(StepResult* result) {
  Request request;
  request.name = kStepEndName;
  request.kind = Kind::kStepEnd;
  const auto operation = std::make_shared<Operation>(std::move(request), nullptr, nullptr);
  if (Status s = Submit(operation); !s.ok()) return s;
  user_tasks_.Serve([&] { return operation->done(); }, Clock::time_point::max());
  *result = operation->step;
  return operation->status();
}

Status Engine::Shutdown(Clock::time_point deadline) {
  Request request;
  request.name = kShutdownName;
  request.kind = Kind::kShutdown;
  const auto operation = std::make_shared<Operation>(std::move(request), nullptr, nullptr);
  if (Status s = Submit(operation); !s.ok()) return s;
  if (!operation->WaitUntil(deadline)) {
    return {RM_ERR_TIMEOUT, "not every rank has called rm_shutdown before the deadline"};
  }
  return operation->status();
}

Membership Engine::membership() const {
  std::lock_guard lock(mu_);
  return membership_;
}

void Engine::ExpectMembership(const Membership& expected) {
  std::lock_guard lock(mu_);
  if (!entered_) membership_ = expected;
}

RebuildTimes Engine::last_rebuild() const {
  std::lock_guard lock(mu_);
  return last_rebuild_;
}

// ---- The loop
// -------------------------------------------------------------------------------------------------------

void Engine::Loop() {
  while (true) {
    Mail mail = WaitForMail();
    if (mail.end) End(*mail.end);
    if (mail.stop) HandleStop(mail);
    if (mail.dropped) Detach();
    HandleArmed(mail);
    HandleSubmitted(&mail);
    if (mail.close) break;
    if (mail.view) Install(std::move(*mail.view), mail.view_at);
    if (WantsRound()) Round();
  }
  End({RM_ERR_SHUTDOWN, "the library was shut down"});
}

bool Engine::HasMail() const {
  return mail_.close || mail_.stop || mail_.dropped || mail_.view || mail_.end ||
         !mail_.armed.empty() || !mail_.submitted.empty();
}

Engine::Mail Engine::WaitForMail() {
  std::unique_lock lock(mu_);
  if (!WantsRound()) {
    busy_ = phase_ != Phase::kActive;
    if (MayRound()) {
      wake_.wait_until(lock, next_round_, [this] { return HasMail(); });
    } else {
      wake_.wait(lock, [this] { return HasMail(); });
    }
  }
  busy_ = true;
  Mail mail = std::move(mail_);
  mail_ = {};
  return mail;
}

void Engine::HandleStop(const Mail& mail) {
  const uint64_t epoch = *mail.stop;
  stopped_epoch_ = std::max(stopped_epoch_, epoch);
  if (view_.epoch <= epoch) {
    {
      std::lock_guard lock(mu_);
      communicator_ = nullptr;
    }
    phase_ = Phase::kNoView;
    times_ = {};
    times_.stop = Seconds(Clock::now() - mail.stop_at);
  }
  options_.listener->OnStopped(epoch);
}

void Engine::HandleArmed(const Mail& mail) {
  for (const auto& [epoch, armed] : mail.armed) {
    if (armed) {
      armed_epoch_ = std::max(armed_epoch_, epoch);
      // Who stands there already says so again: the first word may have been lost.
      const bool stands = boundary_ != nullptr || !entered_;
      if (epoch == view_.epoch && phase_ == Phase::kActive && stands)
        options_.listener->OnBoundary(epoch, step_);
    } else if (armed_epoch_ == epoch) {
      armed_epoch_ = 0;
      // All stand at the boundary, so each may go on by itself.
      if (epoch == view_.epoch && view_.train && phase_ == Phase::kActive) ReleaseBoundary();
    }
  }
}

void Engine::HandleSubmitted(Mail* mail) {
  std::optional<Status> ended;
  {
    std::lock_guard lock(mu_);
    ended = ended_;
  }
  for (auto& operation : mail->submitted) {
    if (ended) {
      operation->Complete(*ended);
    } else if (detached_) {
      CompleteLocally(operation);
    } else {
      pending_.Add(operation);
      new_submission_ = true;
    }
  }
  if (!mail->submitted.empty()) user_tasks_.Notify();
}

void Engine::End(const Status& why) {
  {
    std::lock_guard lock(mu_);
    if (!ended_) ended_ = why;
    communicator_ = nullptr;
    in_flight_.clear();
  }
  phase_ = Phase::kNoView;
  for (auto& operation : pending_.TakeAll()) operation->Complete(why);
  if (boundary_) boundary_->Complete(why);
  boundary_ = nullptr;
  user_tasks_.Notify();
}

void Engine::Reach(FaultPoint point, uint64_t detail) {
  if (options_.on_point) options_.on_point(point, detail);
}

// ---- A round
// --------------------------------------------------------------------------------------------------------

bool Engine::MayRound() const {
  return phase_ == Phase::kActive && !boundary_ && !pending_.empty() && entered_;
}

bool Engine::WantsRound() const {
  return MayRound() && (new_submission_ || Clock::now() >= next_round_);
}

void Engine::Round() {
  Reach(FaultPoint::kBeforeNegotiation, next_number_);
  new_submission_ = false;
  RoundResult result;
  // Below minReplicas every step is the last one until the job has enough workers again.
  const bool armed = armed_epoch_ == view_.epoch || !view_.train;
  if (Status s = negotiator_.Round(communicator_.get(), pending_.Requests(), armed, &result);
      !s.ok()) {
    return Break(s);
  }
  retained_.clear();  // all have entered this round, so all have finished the one before
  Reach(FaultPoint::kAfterNegotiation, next_number_);

  if (result.responses.empty() && !result.anything_new) {
    backoff_ = std::min(std::max(backoff_ * 2, kFirstBackoff), kLastBackoff);
    next_round_ = Clock::now() + backoff_;
  } else {
    backoff_ = {};
    next_round_ = {};
  }
  for (Response& response : result.responses) {
    response.number = next_number_;
    if (Status s = Run(std::move(response)); !s.ok()) return Break(s);
    if (phase_ != Phase::kActive) return;  // shut down
  }
}

Status Engine::Run(Response response) {
  const uint64_t number = response.number;
  Reach(FaultPoint::kBeforeExecute, number);
  Retained result;
  if (Status s = Execute(communicator_.get(), response, pending_, &pool_, &result); !s.ok())
    return s;
  Reach(FaultPoint::kAfterExecute, number);
  if (result.response.kind() == Kind::kAllreduce && result.bytes > 0) {
    retained_
        .clear();  // a part of everybody is in this sum, so everybody has finished what came before
  }
  retained_.push_back(std::move(result));
  ++next_number_;
  ran_epoch_ = view_.epoch;
  Finish(retained_.back());
  Reach(FaultPoint::kAfterPublish, number);
  return {};
}

// The second half of an operation, whether it was executed here or handed over.
void Engine::Finish(const Retained& result) {
  const Response& response = result.response;
  if (response.error == RM_OK && response.kind() == Kind::kShutdown) {
    // Nobody leaves before all know. That the barrier fails means that another one knows it and has
    // gone.
    (void)communicator_->Barrier();
    options_.listener->OnFinished(view_.epoch);
    Forget(response);
    Publish(result, &pending_);
    return End({RM_ERR_SHUTDOWN, "the job was shut down by all ranks"});
  }
  Forget(response);
  Publish(result, &pending_);
  if (response.error == RM_OK && response.kind() == Kind::kStepEnd) TakeStep(response.armed);
  if (rebuilt_pending_) {
    rebuilt_pending_ = false;
    times_.resume = Seconds(Clock::now() - redo_done_);
    {
      std::lock_guard lock(mu_);
      last_rebuild_ = times_;
    }
    // Who has completed a step knows that all had called step_end: so if ours waits, it will be
    // done here too, by hand-over or once more.
    const uint64_t resumed = step_ + (pending_.Find(kStepEndName) != nullptr ? 1 : 0);
    options_.listener->OnRebuilt(times_, step_, resumed);
  }
}

// The names may be used again as soon as their operations are done, so before.
void Engine::Forget(const Response& response) {
  std::lock_guard lock(mu_);
  for (const Request& request : response.requests) in_flight_.erase(request.name);
}

void Engine::TakeStep(bool armed) {
  ++step_;
  step_shown_ = step_;
  boundary_ = pending_.Take(kStepEndName);
  synced_ = false;
  if (!armed || phase_ != Phase::kActive) {
    // In a recovery the boundary is released when the view is installed: a fault cancels the plan.
    if (phase_ == Phase::kActive) ReleaseBoundary();
    return;
  }
  Reach(FaultPoint::kAtBoundary, step_);
  options_.listener->OnBoundary(view_.epoch, step_);
}

void Engine::ReleaseBoundary() {
  if (!boundary_) return;
  boundary_->step = {view_.epoch, step_, view_.size(), synced_};
  const auto operation = std::exchange(boundary_, nullptr);
  operation->Complete({});
  user_tasks_.Notify();
}

void Engine::Break(const Status& why) {
  phase_ = Phase::kBroken;
  communicator_->Abort(why.message());
  if (why.code() == RM_ERR_EPOCH_MOVED || why.code() == RM_ERR_TIMEOUT) return;
  End(why);  // no memory, a defect: this worker can't go on, and its exit tells the others
}

// Of a worker that was dropped by mistake: its results are void, what counts is that its step comes
// to an end.
void Engine::CompleteLocally(const std::shared_ptr<Operation>& operation) {
  const Request& request = operation->request;
  {
    std::lock_guard lock(mu_);
    in_flight_.erase(request.name);
  }
  if (request.kind == Kind::kStepEnd) {
    boundary_ = operation;
    return options_.listener->OnReadyToEnter();
  }
  if (request.kind == Kind::kAllreduce) {
    element::CopyScaled(operation->in, operation->out, request.count, request.dtype,
                        request.prescale * request.postscale);
  } else if (request.kind == Kind::kAllgather) {
    const uint64_t bytes = operation->rows * request.bytes();
    auto data = Buffer::Make(bytes);
    if (data == nullptr)
      return operation->Complete({RM_ERR_UNAVAILABLE, "no memory for an allgather"});
    if (bytes > 0) std::memcpy(data->data(), operation->in, bytes);
    operation->gathered = std::move(data);
    operation->rows_by_rank = {operation->rows};
  }
  operation->Complete({});
}

}  // namespace ringmaster::engine
