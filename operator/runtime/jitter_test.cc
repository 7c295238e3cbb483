#include "operator/runtime/jitter.h"

#include <gtest/gtest.h>

#include <set>

namespace ringmaster::runtime {
namespace {

using std::chrono::milliseconds;

TEST(Jitter, AddsUpToAPartOfTheWait) {
  std::set<milliseconds> waits;
  for (int i = 0; i < 1000; ++i) waits.insert(WithJitter(milliseconds(1000), 5));
  EXPECT_GE(*waits.begin(), milliseconds(1000));
  EXPECT_LE(*waits.rbegin(), milliseconds(1201));
  EXPECT_GT(waits.size(), 100u) << "of 202; the chance is beyond imagination";
  EXPECT_LE(WithJitter(milliseconds(0), 5), milliseconds(1));
}

}  // namespace
}  // namespace ringmaster::runtime
