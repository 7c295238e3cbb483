#include "sidecar/app/lost_state.h"

#include <string>
#include <utility>

#include "common/logging/log.h"

namespace ringmaster::app {

using membership::EpochText;

LostState::LostState(bool has_operator, std::chrono::seconds operator_patience, AgentClock clock,
                     LostStateParts parts)
    : has_operator_(has_operator),
      clock_(std::move(clock)),
      parts_(parts),
      timer_(has_operator, operator_patience) {}

void LostState::Check() {
  const Departure& departure = *parts_.departure;
  const bool lost = parts_.membership->member().state_lost() && !departure.finishing() &&
                    !departure.left() && !departure.draining();
  const auto event = timer_.Update(lost, parts_.orders->connected(), clock_.now());
  if (event == StateLostTimer::Event::kLost && has_operator_) {
    logging::Warn(
        "all workers that had the job's state have died: the operator begins the job again from "
        "its checkpoint epoch={}",
        EpochText(parts_.membership->epoch()));
  }
  if (event != StateLostTimer::Event::kGiveUp) return;
  const std::string message = "all workers that had the job's state have died (view " +
                              EpochText(parts_.membership->epoch()) +
                              "): there is nothing to go on from; start the job again";
  logging::Error("giving up error=\"{}\"", message);
  parts_.table->orders().GiveUp(message);
}

}  // namespace ringmaster::app
