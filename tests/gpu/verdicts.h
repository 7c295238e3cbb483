// What a rank finds wrong: printed, and counted on the board.
//
// Thread rule: any.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "ringmaster/status.h"
#include "tests/gpu/drill_board.h"

namespace ringmaster::gpu_test {

inline void Wrong(DrillBoard* board, const std::string& what) {
  ++board->wrong;
  std::printf("WRONG  %s\n", what.c_str());
}

inline void Check(DrillBoard* board, const Status& status, const std::string& what) {
  if (!status.ok()) Wrong(board, what + ": " + status.message());
}

template <typename T>
void Expect(DrillBoard* board, const std::vector<T>& is, const std::vector<T>& should,
            const std::string& what) {
  if (is == should) return;
  const auto text = [](const std::vector<T>& values) {
    return std::to_string(values.size()) + " values" +
           (values.empty() ? "" : ", the first " + std::to_string(values[0]));
  };
  Wrong(board, what + ": " + text(is) + "; expected are " + text(should));
}

}  // namespace ringmaster::gpu_test
