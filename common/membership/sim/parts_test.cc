// The parts of the simulated world that decide something by themselves.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/job_truth.h"
#include "common/membership/sim/network.h"
#include "common/membership/sim/record_store.h"
#include "common/membership/sim/sim_operator.h"

namespace ringmaster::membership::sim {
namespace {

ViewPtr ViewAt(Epoch epoch) {
  View view;
  view.epoch = epoch;
  return std::make_shared<const View>(std::move(view));
}

TEST(EventQueueTest, EventsOfOneMomentKeepTheirOrder) {
  EventQueue events;
  const Micros now = events.now();
  events.At(now + 7, Kind::kHeal);
  events.At(now + 5, Kind::kFault, 1);
  events.At(now + 5, Kind::kFault, 2);
  EXPECT_EQ(events.Next().a, 1);
  EXPECT_EQ(events.Next().a, 2);
  EXPECT_EQ(events.now(), now + 5);
  EXPECT_EQ(events.Next().kind, Kind::kHeal);
  EXPECT_TRUE(events.empty());
}

TEST(EventQueueTest, AMessageIsKeptUntilItIsTaken) {
  EventQueue events;
  Message first, second;
  first.from = "p1";
  second.from = "p2";
  const std::uint32_t one = events.Keep(std::move(first)), two = events.Keep(std::move(second));
  EXPECT_EQ(events.Take(one).from, "p1");
  EXPECT_EQ(events.Keep(Message()), one) << "its place is free again";
  EXPECT_EQ(events.Take(two).from, "p2");
}

class NetworkTest : public testing::Test {
 protected:
  NetworkTest() {
    for (int pod = 0; pod < 12; ++pod) network_.AddPod();
  }
  int Apart() const {
    int apart = 0;
    for (int pod = 0; pod < 12; ++pod) apart += network_.Connected(3, pod) ? 0 : 1;
    return apart;
  }

  Random random_{1};
  Network network_{&random_};
};

TEST_F(NetworkTest, ACutLinkIsMendedInBothDirections) {
  network_.Cut(3, 2);
  EXPECT_FALSE(network_.Connected(3, 2));
  network_.Mend(2, 3);
  EXPECT_TRUE(network_.Connected(3, 2));
  EXPECT_TRUE(network_.Connected(2, 3));
}

TEST_F(NetworkTest, APartitionEndsAtOnceAndCutsRemain) {
  network_.Cut(3, 2);
  network_.Split(3);
  EXPECT_GT(Apart(), 1);
  network_.Join();
  EXPECT_EQ(Apart(), 1);
  EXPECT_TRUE(network_.ReachesOperators(3));
}

TEST_F(NetworkTest, AHealedNetworkLosesNothing) {
  network_.Draw(true);
  network_.Cut(3, 2);
  network_.Split(3);
  network_.Heal();
  EXPECT_EQ(Apart(), 0);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(network_.Loses());
    EXPECT_LE(network_.Delay(), 3 * kMs);
  }
}

TEST(RecordStoreTest, EachWriteIsAnotherVersionSoAnOldReaderIsFoundOut) {
  RecordStore store;
  store.Begin(NewRecord(ViewAt(MakeEpoch(1, 1))));
  SimOperator first, second;
  first.Read(store);
  second.Read(store);
  EXPECT_EQ(first.version, store.version());
  second.Write(NewRecord(ViewAt(MakeEpoch(1, 2))), &store);
  EXPECT_EQ(second.version, store.version());
  EXPECT_NE(first.version, store.version());
  store.Delete();
  EXPECT_NE(second.version, store.version());
  EXPECT_EQ(store.record().view, nullptr);
}

TEST(RecordStoreTest, TheLineageOutlivesTheRecordAndOnlyRises) {
  RecordStore store;
  store.WriteLineage(3);
  store.WriteLineage(2);
  store.Delete();
  EXPECT_EQ(store.lineage(), 3u);
}

TEST(SimOperatorTest, WhatItHasHeardCountsWhereTheRecordWasDeleted) {
  SimOperator op;
  op.heard = ViewAt(MakeEpoch(1, 5));
  EXPECT_EQ(op.KnownView(), op.heard);
  op.state = NewRecord(ViewAt(MakeEpoch(1, 4)));
  EXPECT_EQ(op.KnownView()->epoch, MakeEpoch(1, 4));
}

TEST(JobTruthTest, TheNewestViewIsTheOneOfTheHighestEpoch) {
  JobTruth truth;
  truth.Add(ViewAt(MakeEpoch(1, 3)));
  truth.Add(ViewAt(MakeEpoch(2, 1)));
  truth.Add(ViewAt(MakeEpoch(1, 4)));
  EXPECT_EQ(truth.newest()->epoch, MakeEpoch(2, 1));
  EXPECT_EQ(truth.Of(MakeEpoch(1, 2)).view, nullptr);
}

TEST(JobTruthTest, ALineageThatGoesBackLosesSteps) {
  JobTruth truth;
  const std::uint64_t before = truth.hash();
  for (int i = 0; i < 5; ++i) truth.CompleteStep(MakeEpoch(1, 1));
  EXPECT_EQ(truth.step(), 5);
  EXPECT_NE(truth.hash(), before);
  EXPECT_EQ(truth.GoBackTo(3, 9), 2u);
  EXPECT_EQ(truth.GoBackTo(4, 9), 0u);
  EXPECT_EQ(truth.step(), 4);
  EXPECT_EQ(truth.trained(), MakeEpoch(1, 1));
}

}  // namespace
}  // namespace ringmaster::membership::sim
