// What schedules have covered, added up and for people.
#include <cstddef>
#include <string>

#include "tests/sim/simulation.h"

namespace ringmaster::app::sim {

void Coverage::Add(const Coverage& o) {
  for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += o.faults[i];
  schedules += o.schedules, events += o.events, steps += o.steps, views += o.views;
  planned_views += o.planned_views, held_views += o.held_views, late_hellos += o.late_hellos;
  promotions += o.promotions, fenced += o.fenced, kills += o.kills;
  resignations += o.resignations, left += o.left, recoveries += o.recoveries;
  restarts += o.restarts, finished += o.finished;
  looks += o.looks, calls_failed += o.calls_failed;
  reconnects += o.reconnects, left_out += o.left_out;
  interrupted += o.interrupted, repeated += o.repeated, handed_over += o.handed_over;
  unconfirmed += o.unconfirmed, committed += o.committed;
}

std::string Coverage::Text() const {
  std::string text;
  const auto line = [&](const std::string& name, std::uint64_t n) {
    text += "  " + name + std::string(name.size() < 32 ? 32 - name.size() : 1, ' ') +
            std::to_string(n) + "\n";
  };
  line("schedules", schedules), line("events", events);
  for (std::size_t i = 0; i < faults.size(); ++i)
    line(std::string("fault: ") + FaultName(static_cast<Fault>(i)), faults[i]);
  line("steps completed", steps), line("ranks interrupted in a call", interrupted);
  line("  results handed over", handed_over), line("  operations run again", repeated);
  line("  results not confirmed", unconfirmed), line("    that count after all", committed);
  line("views", views), line("  planned", planned_views);
  line("  held below min", held_views), line("resignations", resignations);
  line("  for a broken link", reconnects), line("  for one that breaks often", left_out);
  line("workers that reconnect with a view", late_hellos), line("standbys promoted", promotions);
  line("workers fenced", fenced), line("kills asked for", kills), line("pods left", left);
  line("recoveries begun", recoveries), line("  ended with a restart", restarts);
  line("looks of the operator", looks), line("calls to the API server failed", calls_failed);
  line("jobs finished", finished);
  return text;
}

}  // namespace ringmaster::app::sim
