#include "common/membership/sim/event_queue.h"

#include <utility>

namespace ringmaster::membership::sim {

SimEvent EventQueue::Next() {
  const SimEvent event = queue_.top();
  queue_.pop();
  now_ = event.at;
  return event;
}

std::uint32_t EventQueue::Keep(Message&& message) {
  if (free_messages_.empty()) {
    messages_.push_back(std::move(message));
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t number = free_messages_.back();
  free_messages_.pop_back();
  messages_[number] = std::move(message);
  return number;
}

Message EventQueue::Take(std::uint32_t number) {
  free_messages_.push_back(number);
  return std::move(messages_[number]);
}

std::uint32_t EventQueue::KeepReport(RecoveryReport report) {
  reports_.push_back(std::move(report));
  return static_cast<std::uint32_t>(reports_.size() - 1);
}

}  // namespace ringmaster::membership::sim
