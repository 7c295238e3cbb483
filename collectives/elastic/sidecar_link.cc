#include "collectives/elastic/sidecar_link.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ringmaster::elastic {
namespace {

constexpr std::chrono::seconds kHearingPatience{10};  // longer than a restart of the sidecar takes

}  // namespace

SidecarLink::SidecarLink(const WorkerOptions& options, engine::StateRegistry* state,
                         PingFacts* facts)
    : socket_(options.socket),
      patience_(options.patience),
      timeline_(options.timeline),
      registration_(options.slot, options.incarnation, options.standby, options.version),
      entry_(&registration_, &frames_, state, options.patience),
      reports_(&registration_, &rest_, &frames_, facts),
      orders_(&registration_, &rest_, &frames_, facts, &entry_) {}

void SidecarLink::Attach(engine::Engine* engine) {
  engine_ = engine;
  reports_.Attach(engine);
}

Status SidecarLink::Start(Endpoint* endpoint, std::optional<Clock::time_point> limit, Role* role) {
  orders_.Attach(engine_, endpoint, timeline_);
  client_ = std::make_unique<sidecar_client::SidecarClient>(
      sidecar_client::SidecarClient::Options{socket_}, &orders_);
  frames_.Use(client_.get());
  client_->Start();  // only now: its thread calls `orders_`, which send frames
  Status status = AwaitRole(limit, role);
  if (status.code() != RM_ERR_TIMEOUT) return status;
  const std::string trouble = client_->trouble();
  return {RM_ERR_UNAVAILABLE, "rm_init: " + (trouble.empty() ? status.message() : trouble)};
}

// A sidecar that is there may know the role late, because it asks the operator first. The job's own
// limit says then who is missing.
Status SidecarLink::AwaitRole(std::optional<Clock::time_point> limit, Role* role) {
  Status status;
  do {
    status = registration_.AwaitRole(limit.value_or(Clock::now() + patience_), role);
  } while (status.code() == RM_ERR_TIMEOUT && !limit && client_->trouble().empty());
  return status;
}

void SidecarLink::Close() {
  frames_.Bye();
  client_.reset();
}

void SidecarLink::Wakes() {
  rest_.Wakes();
  frames_.Woken();
}

void SidecarLink::Finish() {
  // There is nothing to say, or the sidecar knows it.
  if (rest_.resting() == 0 || !rest_.may_rest()) return;
  const uint64_t epoch = engine_->info().membership().epoch;
  rest_.Finished(epoch);
  frames_.Finished(epoch);
}

// Waits for as long as a sidecar takes that is just starting again.
void SidecarLink::AwaitHeard(Clock::time_point deadline) {
  if (!client_ || client_->AwaitHeard(std::min(deadline, Clock::now() + kHearingPatience))) return;
  std::fprintf(
      stderr,
      "ringmaster: the sidecar of this pod does not answer: it may not know that all ranks "
      "have shut down, or begun again\n");
}

}  // namespace ringmaster::elastic
