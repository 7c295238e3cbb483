#include "collectives/elastic/rest_status.h"

#include <gtest/gtest.h>

namespace ringmaster::elastic {
namespace {

TEST(RestStatusTest, ASidecarThatStartsAgainHearsThatTheWorkerRests) {
  RestStatus rest;
  EXPECT_FALSE(rest.may_rest()) << "no sidecar has said so";
  rest.Welcomed(true);
  EXPECT_TRUE(rest.may_rest());
  rest.Rests(5);
  EXPECT_EQ(rest.Welcomed(true).resting_epoch, 5u);
  rest.Wakes();
  EXPECT_EQ(rest.Welcomed(true).resting_epoch, 0u);
  rest.Rests(6);
  rest.Finished(7);
  const RestStatus::Repeat through = rest.Welcomed(true);
  EXPECT_EQ(through.resting_epoch, 6u);
  EXPECT_EQ(through.finished_epoch, 7u);
  EXPECT_FALSE(rest.may_rest()) << "it has said that it is through";
}

TEST(RestStatusTest, ForASidecarOfAnEarlierVersionAShutdownIsTheEnd) {
  RestStatus rest;
  rest.Welcomed(true);
  rest.Rests(5);
  const RestStatus::Repeat repeat = rest.Welcomed(false);
  EXPECT_EQ(repeat.resting_epoch, 0u);
  EXPECT_EQ(repeat.finished_epoch, 5u);
  EXPECT_FALSE(rest.may_rest());
}

}  // namespace
}  // namespace ringmaster::elastic
