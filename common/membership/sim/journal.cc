#include "common/membership/sim/journal.h"

#include <cstdio>

namespace ringmaster::membership::sim {

void Journal::Fail(const std::string& what) {
  if (violation_.empty()) violation_ = what;
  Trace([&] { return "VIOLATION " + what; });
}

void Journal::Append(const std::string& text) {
  char time[32];
  std::snprintf(time, sizeof time, "%10.3f ms  ",
                static_cast<double>(events_->now() - 1000 * kMs) / kMs);
  *trace_ += time + text + "\n";
}

}  // namespace ringmaster::membership::sim
