#include "common/option_bounds/option_bounds.h"

#include <gtest/gtest.h>

#include <string>

namespace ringmaster::option_bounds {
namespace {

// Empty: the word is allowed.
std::string Judge(const CLI::Validator& validator, std::string word) { return validator(word); }

TEST(OptionBoundsTest, BothBoundsAreAllowed) {
  for (const char* word : {"1", "7", "60"}) EXPECT_EQ(Judge(WholeNumber(1, 60), word), "") << word;
  for (const char* word : {"0.1", "7", "3600"})
    EXPECT_EQ(Judge(Number(0.1, 3600), word), "") << word;
}

TEST(OptionBoundsTest, WhatIsNotAllowedIsToldWithWhatIs) {
  for (const char* word : {"0", "61", "-1", "four", "1.5", "", "99999999999999999999"})
    EXPECT_EQ(Judge(WholeNumber(1, 60), word),
              "\"" + std::string(word) + "\" is not a whole number from 1 to 60");
  for (const char* word : {"0", "4000", "nan", "x"})
    EXPECT_EQ(Judge(Number(0.1, 3600), word),
              "\"" + std::string(word) + "\" is not a number from 0.1 to 3600");
}

TEST(OptionBoundsTest, ABoundThatNobodyMeetsIsNamedToWhoHasGoneBeyondIt) {
  EXPECT_EQ(Judge(Number(1, 1e9), "0"), "\"0\" is not a number of at least 1");
  EXPECT_EQ(Judge(Number(1, 1e9), "1e10"), "\"1e10\" is not a number from 1 to 1000000000");
  EXPECT_EQ(Judge(WholeNumber(4, std::int64_t{1} << 40), "3"),
            "\"3\" is not a whole number of at least 4");
}

}  // namespace
}  // namespace ringmaster::option_bounds
