// One event of a timeline: something that took from `begin` to `end`, or happened at `begin`.
//
// Thread rule: a value.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

namespace ringmaster::timeline {

using Clock = std::chrono::steady_clock;

// Rows of the picture. kTensor: each name has a row of its own.
enum class Row : uint8_t { kSteps, kRounds, kWaits, kOperations, kViews, kTensor };

struct Event {
  struct Number {
    const char* key = nullptr;  // a literal; null: none
    int64_t value = 0;
  };

  Row row = Row::kSteps;
  const char* what = "";  // a literal, such as "NEGOTIATE_ALLREDUCE"
  std::string name;       // of the tensor; elsewhere more about `what`, or empty
  Clock::time_point begin;
  Clock::time_point end;  // equal to `begin`: a moment
  std::array<Number, 4> numbers;
};

}  // namespace ringmaster::timeline
