#include "operator/cli/node_revival.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ringmaster::cli {
namespace {

constexpr std::chrono::seconds kShortestDelay{1}, kLongestDelay{30};
constexpr int kMostDoublings = 5;
// After a node process has run for this long, its failures are forgotten.
constexpr std::chrono::seconds kStableAfter{60};
// The API server's facts about a node may be this much older than its process.
constexpr std::chrono::seconds kOldSight{5};
// The most attempts that fail for a reason that only a person can mend.
constexpr int kMostInVain = 10;

std::chrono::seconds PauseBefore(int attempt) {
  return std::min(kLongestDelay, kShortestDelay * (1 << std::min(attempt, kMostDoublings)));
}

std::string OneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\r') continue;
    line += c == '\n' ? "; " : std::string(1, c);
  }
  return line;
}

}  // namespace

bool NodeRevival::Look(Sight sight, Time now) {
  if (stage_ == Stage::kTries) return false;
  if (stage_ == Stage::kRuns) {
    if (now - running_since_ >= kProven) attempts_ = 0;
    if (sight == Sight::kHeard || now - running_since_ < kOldSight) return false;
    if (sight == Sight::kGone)
      Wait(now, "its node process has ended", "it is started again");
    else
      Wait(now, "nothing is heard of its node process", "it is looked for by ssh");
    return false;
  }
  if (sight == Sight::kHeard) {
    Say("its node process is heard again");
    stage_ = Stage::kRuns;
    running_since_ = now;
    in_vain_ = 0;
    return false;
  }
  if (stage_ == Stage::kGivenUp || now < next_) return false;
  stage_ = Stage::kTries;
  return true;
}

void NodeRevival::Finish(const Attempt& attempt, Time now) {
  const bool in_vain = attempt.end == Attempt::End::kFailed && attempt.stays_so;
  in_vain_ = in_vain ? in_vain_ + 1 : 0;
  if (attempt.end == Attempt::End::kStarted) {
    Say("its node process was started again");
    stage_ = Stage::kRuns;
    running_since_ = now;
  } else if (in_vain_ == kMostInVain) {
    Say(fmt::format("{}; that was so {} times: it is not tried again", OneLine(attempt.why),
                    in_vain_));
    stage_ = Stage::kGivenUp;
  } else if (attempt.end == Attempt::End::kRanAllTheTime) {
    Wait(now, "its node process runs there, but nothing is heard of it", "it is looked for again");
  } else {
    Wait(now, OneLine(attempt.why), "tried again");
  }
}

void NodeRevival::Wait(Time now, const std::string& why, const std::string& what) {
  const std::chrono::seconds pause = PauseBefore(attempts_++);
  next_ = now + pause;
  stage_ = Stage::kWaits;
  Say(fmt::format("{}; {} in {} s", why, what, pause.count()));
}

// A message that equals the last one is not repeated.
void NodeRevival::Say(const std::string& what) {
  if (what != said_) messages_.push_back(fmt::format("host {}: {}", host_, what));
  said_ = what;
}

std::vector<std::string> NodeRevival::TakeMessages() { return std::exchange(messages_, {}); }

}  // namespace ringmaster::cli
