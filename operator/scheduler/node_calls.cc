#include "operator/scheduler/node_calls.h"

#include <algorithm>

namespace ringmaster::scheduler {

bool NodeCalls::SetCalling(const std::string& job, bool calls) {
  return calls ? calling_.insert(job).second : calling_.erase(job) != 0;
}

void NodeCalls::Decide(const std::vector<WaitingJob*>& line, bool room_is_made, Moment now) {
  look_again_.reset();
  if (!rules_.calls) return;
  std::vector<WaitingJob*> lack;
  std::size_t turns = calling_.size();
  for (WaitingJob* waiting : line) {
    if (!Lacks(waiting, now)) continue;
    // Who was told that it may call has perhaps begun to.
    if (waiting->answer.calls_for_nodes) {
      turns += NeedsTurn(*waiting) ? 1 : 0;
    } else {
      lack.push_back(waiting);
    }
  }
  if (room_is_made) return;
  for (WaitingJob* waiting : lack) {
    const bool needs_turn = NeedsTurn(*waiting);
    if ((needs_turn && turns >= rules_.jobs_at_once) || !MayCall(*waiting)) continue;
    waiting->answer.calls_for_nodes = true;
    turns += needs_turn ? 1 : 0;
  }
}

// True: it has lacked room for long enough.
bool NodeCalls::Lacks(WaitingJob* waiting, Moment now) {
  const GangFit& answer = waiting->answer;
  if (!waiting->CanNotStart() || !answer.decided || !answer.leavers.empty()) {
    waiting->lacks_since.reset();
    waiting->answer.calls_for_nodes = false;
    return false;
  }
  if (!waiting->lacks_since) waiting->lacks_since = now;
  const Moment due = *waiting->lacks_since + rules_.after;
  if (now >= due) return true;
  look_again_ = std::min(look_again_.value_or(due), due);
  return false;
}

// A job that holds pods already, and gets nothing from them without the rest, waits for no turn.
bool NodeCalls::NeedsTurn(const WaitingJob& waiting) const {
  return waiting.request.standing == Standing::kWaits && calling_.count(waiting.request.job) == 0;
}

bool NodeCalls::MayCall(const WaitingJob& waiting) const {
  // Its pods have to be told in which domain, and nobody knows that of a node to come.
  const bool nowhere = waiting.request.near.required && waiting.answer.domain.empty();
  return !nowhere && !Fits(waiting);
}

// There is room for it, then, and it is kept for another job.
bool NodeCalls::Fits(const WaitingJob& waiting) const {
  const AdmissionRequest& request = waiting.request;
  std::vector<std::string> held;
  for (int i = waiting.answer.fit; i < request.Least(); ++i) {
    const auto node = capacity_.Place(*waiting.shapes[i]);
    if (!node) break;
    capacity_.Hold(*request.pods[i], waiting.shapes[i], *node, request.job);
    held.push_back(PathOf(*request.pods[i]));
  }
  for (const std::string& path : held) capacity_.Undo(path);
  return static_cast<int>(held.size()) == request.Least() - waiting.answer.fit;
}

}  // namespace ringmaster::scheduler
