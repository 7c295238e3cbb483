#include "tests/sim/journal.h"

#include <cstdio>

namespace ringmaster::app::sim {

void Journal::Fail(const std::string& what) {
  if (violation_.empty()) violation_ = what;
  Trace([&] { return "VIOLATION " + what; });
}

void Journal::Append(const std::string& text) {
  char time[32];
  std::snprintf(time, sizeof time, "%10.3f ms  ",
                static_cast<double>(time_->now() - 100 * kSecond) / kMs);
  *trace_ += time + text + "\n";
}

}  // namespace ringmaster::app::sim
