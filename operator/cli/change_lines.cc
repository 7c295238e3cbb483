#include "operator/cli/change_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "operator/inspection/text_format.h"
#include "operator/inspection/troubles.h"

namespace ringmaster::cli {
namespace {

using Rebuilds = std::vector<job::Rebuild>;

constexpr size_t kMostChanges = 10;

Rebuilds RebuildsOf(const inspection::Inspection& found) {
  const inspection::SidecarStatus* teller = inspection::Teller(found);
  return teller == nullptr ? Rebuilds() : teller->rebuilds;
}

// "4m ago", in a column; the time is not always known.
std::string AgoText(std::int64_t unix_ms, api::Time now) {
  if (unix_ms == 0) return std::string(9, ' ');
  const api::Time at{std::chrono::milliseconds(unix_ms)};
  return fmt::format("{:>5} ago", inspection::Age(api::FormatTime(at), now));
}

std::string TextOfChange(const job::Rebuild& change, api::Time now) {
  std::string text = fmt::format(
      "{}  view {}, {}: {}", AgoText(change.at_unix_ms, now), inspection::ViewName(change.epoch),
      inspection::Counted(static_cast<size_t>(std::max(0, change.world_size)), "worker"),
      change.reason);
  if (!change.left.empty())
    text += fmt::format("; {} {}", inspection::FirstFew(change.left),
                        change.planned ? "left by plan" : "lost");
  if (!change.joined.empty())
    text += fmt::format("; {} joined", inspection::FirstFew(change.joined));
  if (const double total = job::TotalSeconds(change.seconds); change.complete && total > 0)
    text += "; paused for " + inspection::Milliseconds(total);
  if (change.steps_lost > 0)
    text += "; " + inspection::Counted(static_cast<size_t>(change.steps_lost), "step") + " lost";
  return text;
}

std::vector<std::string> ChangesBetween(const Rebuilds& changes, size_t first, size_t end,
                                        api::Time now) {
  std::vector<std::string> lines;
  for (size_t i = first; i < std::min(end, changes.size()); ++i)
    lines.push_back(TextOfChange(changes[i], now));
  return lines;
}

}  // namespace

std::vector<std::string> ChangeLines(const inspection::Inspection& found, api::Time now) {
  const Rebuilds changes = RebuildsOf(found);
  const size_t skip = changes.size() - std::min(changes.size(), kMostChanges);
  return ChangesBetween(changes, skip, changes.size(), now);
}

std::vector<std::string> LastLossLines(const inspection::Inspection& found, api::Time now) {
  const Rebuilds changes = RebuildsOf(found);
  for (size_t i = changes.size(); i-- > 0;)
    if (!changes[i].left.empty() && !changes[i].planned)
      return ChangesBetween(changes, i, i + 2, now);
  return {};
}

}  // namespace ringmaster::cli
