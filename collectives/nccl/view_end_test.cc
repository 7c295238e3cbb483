#include "collectives/nccl/view_end.h"

#include <gtest/gtest.h>

namespace ringmaster::nccl {
namespace {

TEST(ViewEndTest, AViewIsOverWhenItOrALaterOneWasAborted) {
  ViewEnd view;
  view.Install(5);
  const Patience::Over over = view.Asker();
  view.Abort(4);
  EXPECT_FALSE(over()) << "an earlier view's end";
  view.Abort(6);
  EXPECT_TRUE(over());
  view.Install(7);
  EXPECT_FALSE(over());
}

TEST(ViewEndTest, ALateAbortOfAnEarlierViewTakesNothingBack) {
  ViewEnd view;
  view.Install(5);
  view.Abort(5);
  view.Abort(3);
  EXPECT_TRUE(view.over());
}

}  // namespace
}  // namespace ringmaster::nccl
