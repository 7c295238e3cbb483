#include "collectives/elastic/rebuild_text.h"

#include <gtest/gtest.h>

namespace ringmaster::elastic {
namespace {

TEST(RebuildTextTest, AllPhasesAreNamedAlsoThoseThatAWorkerDoesNotMeasure) {
  engine::RebuildTimes times;
  EXPECT_EQ(RebuildText(times), "");
  times.epoch = 7;
  times.reason = "WorkerLost";
  times.stop = 0.5;
  times.connect = 1.25;
  times.redo = 0.125;
  times.resume = 2;
  EXPECT_EQ(RebuildText(times),
            R"({"epoch":7,"reason":"WorkerLost","seconds":{"connect":1.25,"decide":0.0,)"
            R"("detect":0.0,"redo":0.125,"resume":2.0,"stop":0.5}})");
}

}  // namespace
}  // namespace ringmaster::elastic
