#include "sidecar/app/history_handover.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/fields/parse.h"
#include "common/logging/log.h"
#include "sidecar/app/training_history.h"

namespace ringmaster::app {
namespace {

using membership::Pod;
using membership::View;

std::vector<Pod> OthersIn(const View& view, const std::string& self) {
  std::vector<Pod> others;
  for (const Pod& pod : view.pods)
    if (pod.uid != self) others.push_back(pod);
  return others;
}

bool WasThereBefore(const View& view, const Pod& pod) {
  return std::any_of(view.ranks.begin(), view.ranks.end(), [&](const auto& rank) {
    return !rank.joined && view.pods[rank.pod].uid == pod.uid;
  });
}

}  // namespace

HistoryHandover::HistoryHandover(std::string self, TrainingHistory* history, Send send)
    : self_(std::move(self)),
      history_(history),
      send_(std::move(send)),
      stage_(send_ ? Stage::kOutside : Stage::kComplete) {}

void HistoryHandover::Entered(const View& view, bool begins, SteadyTime now) {
  others_ = OthersIn(view, self_);
  donors_ = others_;
  std::erase_if(donors_, [&](const Pod& pod) { return !WasThereBefore(view, pod); });
  if (donors_.empty()) donors_ = others_;
  if (stage_ == Stage::kOutside) {
    stage_ = begins || others_.empty() ? Stage::kComplete : Stage::kAsks;
    if (complete()) return;
    history_->PauseRecord();
    before_epoch_ = view.epoch + 1;
  }
  if (asked_.empty()) next_ = std::max(next_, now + kQuiet);
}

void HistoryHandover::Tick(SteadyTime now, bool view_changes) {
  if (stage_ != Stage::kAsks || view_changes || now < next_) return;
  if (!asked_.empty()) return TryAnother(now);
  if (tries_ < kMostTries && !donors_.empty()) return Ask(now);
  logging::Info("what was before this pod joined is not known in full tries={}", tries_);
  Complete();
}

void HistoryHandover::Complete() {
  stage_ = Stage::kComplete;
  history_->ResumeRecord();
}

// Many that join together don't all ask the same.
void HistoryHandover::Ask(SteadyTime now) {
  const std::size_t begin = std::hash<std::string>()(self_);
  const Pod& donor = donors_[(begin + static_cast<std::size_t>(tries_)) % donors_.size()];
  asked_ = donor.uid;
  next_ = now + kPatience;
  const Json ask = {{"beforeUnixMs", before_unix_ms_}, {"beforeEpoch", before_epoch_}};
  send_(donor.uid, donor.address, Json{{"ask", ask}}.dump());
}

void HistoryHandover::TryAnother(SteadyTime now) {
  asked_.clear();
  ++tries_;
  next_ = now + kAgain;
}

void HistoryHandover::OnMessage(const std::string& body, const std::string& from, SteadyTime now) {
  constexpr std::size_t kDepth = 8;
  const Json message = fields::ParseOrDiscard(body, {.bytes = kMostPage, .depth = kDepth});
  const auto sender =
      std::find_if(others_.begin(), others_.end(), [&](const Pod& pod) { return pod.uid == from; });
  if (sender == others_.end()) return;
  if (const Json& ask = fields::Member(message, "ask"); ask.is_object()) return OnAsk(ask, *sender);
  const Json& page = fields::Member(message, "page");
  if (stage_ != Stage::kAsks || from != asked_ || !page.is_object()) return;
  bytes_ += body.size();
  OnPage(page, now);
}

void HistoryHandover::OnAsk(const Json& ask, const Pod& from) {
  if (!send_) return;
  Json page =
      history_->Before(fields::Integer(ask, "beforeUnixMs"), fields::Unsigned(ask, "beforeEpoch"));
  page["complete"] = complete();
  send_(from.uid, from.address, Json{{"page", std::move(page)}}.dump());
}

void HistoryHandover::OnPage(const Json& page, SteadyTime now) {
  const bool more = history_->Take(page, &before_unix_ms_, &before_epoch_);
  if (more && bytes_ < kMostBytes) {
    asked_.clear();
    next_ = now;  // with the next tick
    return;
  }
  // It may have joined a moment ago itself.
  if (!more && !fields::Flag(page, "complete")) return TryAnother(now);
  Complete();
  logging::Info("what was before this pod joined has been told by={} bytes={} since_unix_ms={}",
                asked_, bytes_, history_->record().since_unix_ms());
}

}  // namespace ringmaster::app
