// Asks for a view of which only the epoch is known.
#include <algorithm>
#include <bit>
#include <vector>

#include "operator/planner/phases.h"
#include "operator/planner/timings.h"

namespace ringmaster::planner {
namespace {

// An epoch that nobody can show, because whoever told it is gone or was wrong, is not asked for at
// ever shorter intervals: the next question is twice as long after the first report.
constexpr unsigned kMostQuestions = 16;

std::vector<const SidecarFacts*> WhoHasIt(const Snapshot& in) {
  std::vector<const SidecarFacts*> found;
  for (const SidecarFacts& sidecar : in.sidecars) {
    if (sidecar.connected && sidecar.epoch >= in.told_view.epoch) found.push_back(&sidecar);
  }
  return found;
}

// Sidecars that have finished are gone soon, and who was in the last view decides what their exits
// mean.
bool SomebodyHasFinished(const Snapshot& in) {
  return std::any_of(in.sidecars.begin(), in.sidecars.end(), [](const SidecarFacts& sidecar) {
    return sidecar.connected && sidecar.finished_epoch != 0;
  });
}

}  // namespace

void AskForView(const Snapshot& in, DecisionDraft& out) {
  if (in.told_view.epoch <= membership::EpochOf(in.view)) return;
  const auto waited = std::max(in.now - in.told_view.since, Time::duration(0));
  if (waited < kCoordinatorReports && !SomebodyHasFinished(in)) {
    return out.LookAgainAt(in.told_view.since + kCoordinatorReports);
  }
  const auto periods = std::max<std::uint64_t>(1, waited / kCoordinatorReports);
  const unsigned question =
      std::min(static_cast<unsigned>(std::bit_width(periods)), kMostQuestions);
  if (question == kMostQuestions) return;
  out.LookAgainAt(in.told_view.since + kCoordinatorReports * (1 << question));
  const std::vector<const SidecarFacts*> able = WhoHasIt(in);
  if (able.empty()) return;
  const SidecarFacts& asked = *able[(question - 1) % able.size()];
  out.notices.push_back({asked.pod_uid, ViewWantedNotice{in.told_view.epoch}});
}

}  // namespace ringmaster::planner
