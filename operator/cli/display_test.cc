#include "operator/cli/display.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace ringmaster::cli {
namespace {

using std::chrono::seconds;

TEST(PlainDisplayTest, ALineEveryFewSecondsAndOneAMinuteWhereNothingChanges) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  const auto display = MakePlainDisplay(out, seconds(3));
  const TimePoint begin{};
  display->Progress("0s ", "starting", begin);
  display->Progress("1s ", "step 1", begin + seconds(1));
  display->Progress("3s ", "step 9", begin + seconds(3));
  for (int i = 4; i < 70; ++i)
    display->Progress(std::to_string(i) + "s ", "step 9", begin + seconds(i));
  std::fclose(out);
  EXPECT_EQ(std::string(text, size), "0s starting\n3s step 9\n63s step 9\n");
  free(text);
}

}  // namespace
}  // namespace ringmaster::cli
