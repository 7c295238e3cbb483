// What schedules have covered, added up and for people.
#include <algorithm>
#include <cstddef>
#include <string>

#include "common/membership/sim/simulation.h"

namespace ringmaster::membership::sim {

void Coverage::Add(const Coverage& o) {
  for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += o.faults[i];
  schedules += o.schedules, events += o.events, messages += o.messages;
  lost += o.lost, repeated += o.repeated, steps += o.steps;
  views += o.views, planned_views += o.planned_views, held_views += o.held_views;
  campaigns += o.campaigns, refused += o.refused;
  by_majority += o.by_majority, by_record += o.by_record, by_all += o.by_all;
  record_conflicts += o.record_conflicts, blocked += o.blocked;
  recoveries += o.recoveries, recovered_views += o.recovered_views;
  restarts += o.restarts, recovery_waits += o.recovery_waits;
  steps_lost += o.steps_lost, five_and_more += o.five_and_more;
  largest = std::max(largest, o.largest);
}

void Coverage::Add(const MemberCounters& member) {
  campaigns += member.campaigns;
  refused += member.refused;
  by_majority += member.decided_by_majority;
  by_record += member.decided_by_record;
  by_all += member.decided_by_all;
}

std::string Coverage::Text() const {
  std::string text;
  auto line = [&](const std::string& name, std::uint64_t n) {
    text += "  " + name + std::string(name.size() < 28 ? 28 - name.size() : 1, ' ') +
            std::to_string(n) + "\n";
  };
  line("schedules", schedules), line("largest membership", largest), line("events", events);
  line("messages", messages), line("  lost", lost), line("  repeated", repeated);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    line(std::string("fault: ") + FaultName(static_cast<Fault>(i)), faults[i]);
  }
  line("steps completed", steps), line("views decided", views);
  line("  planned", planned_views), line("  held below min", held_views);
  line("campaigns", campaigns), line("  refused for a higher one", refused);
  line("quorums by majority (6a)", by_majority), line("quorums with R (6a)", by_record);
  line("quorums by resignation (6b)", by_all), line("record write conflicts", record_conflicts);
  line("recoveries begun", recoveries), line("  ended with survivors", recovered_views);
  line("  ended with a restart", restarts), line("  waits for proof", recovery_waits);
  line("  steps lost with the dead", steps_lost);
  line("schedules of 5 pods and more", five_and_more);
  line("rightly blocked at the end", blocked);
  return text;
}

}  // namespace ringmaster::membership::sim
