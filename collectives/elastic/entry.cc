#include "collectives/elastic/entry.h"

#include <algorithm>
#include <cstdio>

namespace ringmaster::elastic {
namespace {

constexpr int kFencedShare = 20;  // of the patience: 30 s of 600
constexpr std::chrono::milliseconds kLookAtRole{100};
constexpr std::chrono::milliseconds kLookAtSidecar{1000};

}  // namespace

void Entry::Fence() {
  fenced_ = true;
  registration_->SidecarSilent(Clock::now() + patience_);
}

Status Entry::Await(engine::Engine* engine, Clock::time_point deadline) {
  Ask();
  // A worker without state is let in only if the job begins anew. So what it normally waits for is
  // the end of the job, and the deadline doesn't count.
  Status status = AwaitView(engine, stateless() ? Clock::time_point::max() : deadline);
  registration_->EndWait();
  return status;
}

Status Entry::AwaitBegin(engine::Engine* engine, Clock::time_point deadline) {
  Ask();
  Status status;
  do {
    status = engine->AwaitEntered(std::min(deadline, Clock::now() + kLookAtRole));
  } while (status.code() == RM_ERR_TIMEOUT && Clock::now() < deadline &&
           registration_->role() == Role::kBootstrap);
  registration_->EndWait();
  return status;
}

void Entry::Ask() {
  if (!registration_->RequestEntry()) return;
  if (stateless()) {
    std::fprintf(
        stderr,
        "ringmaster: the job trains already and this worker's script registers no state that "
        "it could get from the others: they go on without it. @elastic.run with a TorchState "
        "(or register_state, rm_state_register) lets it join\n");
  }
  AskAgain();
}

bool Entry::stateless() const { return registration_->role() == Role::kJoining && state_->empty(); }

Status Entry::AwaitView(engine::Engine* engine, Clock::time_point deadline) const {
  while (true) {
    const auto status =
        fenced_ ? AwaitUnfenced(engine, deadline) : AwaitHeardView(engine, deadline);
    if (status) return *status;
  }
}

// A sidecar that was away for long may still count on this worker in the view that it has given
// up: then nobody lets it in, and only another process can take its place. That is known some time
// after the sidecar is back.
std::optional<Status> Entry::AwaitUnfenced(engine::Engine* engine,
                                           Clock::time_point deadline) const {
  const auto patience = patience_ / kFencedShare;
  auto ends = Clock::now() + patience;
  do {
    Status status = engine->AwaitEntered(std::min({deadline, ends, Clock::now() + kLookAtSidecar}));
    if (status.code() != RM_ERR_TIMEOUT || Clock::now() >= deadline) return status;
    const auto silence_ends = registration_->silence_ends();
    if (silence_ends == Clock::time_point::max()) continue;
    ends = std::min(silence_ends, Clock::now() + patience);
  } while (fenced_ && Clock::now() < ends);
  if (!fenced_) return std::nullopt;
  return Status(RM_ERR_DROPPED, "fenced, and not let in again since: start again");
}

// A wait without a deadline ends, too, when nobody is left that could end it: the sidecar has not
// been heard for long.
std::optional<Status> Entry::AwaitHeardView(engine::Engine* engine,
                                            Clock::time_point deadline) const {
  Status status;
  Clock::time_point now;
  do {
    now = Clock::now();
    status = engine->AwaitEntered(std::min(deadline, now + kLookAtSidecar));
    if (status.code() != RM_ERR_TIMEOUT || Clock::now() >= deadline) return status;
    if (counted_on_) return std::nullopt;
  } while (now < registration_->silence_ends());
  return Status(RM_ERR_UNAVAILABLE, kSidecarGone);
}

}  // namespace ringmaster::elastic
