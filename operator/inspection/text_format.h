// Figures as people read them: views, durations, amounts. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ringmaster::inspection {

std::string ViewName(uint64_t epoch);             // "1.7"
std::string Counted(size_t n, const char* noun);  // "1 worker", "2 workers"
// "a, b, c, d and 3 more"
std::string FirstFew(const std::vector<std::string>& words);
std::string Milliseconds(double seconds);  // "41 ms", "1.3 s"
std::string Number(double value);          // at most four digits, no trailing zeros
std::string Clock(double seconds);         // "  12.3s", the left margin of every line

// "detect 1, decide 12, connect 2, redo 1, resume 25": milliseconds, in chronological order.
std::string PhasesText(const std::map<std::string, double>& seconds);

}  // namespace ringmaster::inspection
