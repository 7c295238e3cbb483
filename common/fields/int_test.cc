#include "common/fields/int.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace ringmaster::fields {
namespace {

constexpr int kLowest = std::numeric_limits<int>::min(), kHighest = std::numeric_limits<int>::max();

TEST(IntTest, WhatDoesNotFitIntoAnIntIsAbsent) {
  const Json object = {{"highest", kHighest},
                       {"above", std::int64_t{kHighest} + 1},
                       {"lowest", kLowest},
                       {"below", std::int64_t{kLowest} - 1},
                       {"huge", 1e300}};
  EXPECT_EQ(Int(object, "highest", 42), kHighest);
  EXPECT_EQ(Int(object, "lowest", 42), kLowest);
  for (const char* name : {"above", "below", "huge"}) {
    EXPECT_EQ(Int(object, name, 42), 42) << name;
    EXPECT_EQ(Int(object, name), 0) << name;
  }
}

TEST(IntTest, WhatIsMissingOrNoNumberIsAbsent) {
  const Json object = {{"text", "7"}, {"fraction", 2.75}};
  EXPECT_EQ(Int(object, "missing", -1), -1);
  EXPECT_EQ(Int(object, "text", -1), -1);
  EXPECT_EQ(Int(object, "fraction", -1), 2) << "fractions are cut off, as in fields.h";
}

}  // namespace
}  // namespace ringmaster::fields
