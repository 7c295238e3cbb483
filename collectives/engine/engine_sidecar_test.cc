// Messages of the sidecar that come twice, late or not at all, because a connection broke or a
// sidecar started again.
#include <gtest/gtest.h>

#include "collectives/engine/test_world.h"
#include "tests/support/reset_links.h"

namespace ringmaster::engine {
namespace {

TEST(EngineSidecarTest, ArmedAgainAtItsBoundaryAWorkerSaysThatItStandsThere) {
  TestWorld world(2);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  for (int id : {0, 1}) world.workers[id]->engine->PostArmed(epoch, true);
  std::thread members([&] {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      StepResult result;
      EXPECT_TRUE(w.engine->StepEnd(&result).ok());
    });
  });
  const auto both_there = [&] {
    return world.workers[0]->boundary == epoch && world.workers[1]->boundary == epoch;
  };
  world.Await(both_there);
  {
    std::lock_guard lock(world.mu);
    for (int id : {0, 1}) world.workers[id]->boundary = 0;
  }
  for (int id : {0, 1}) world.workers[id]->engine->PostArmed(epoch, true);
  world.Await(both_there);
  for (int id : {0, 1}) world.workers[id]->engine->PostArmed(epoch, false);
  members.join();
}

TEST(EngineSidecarTest, AViewThatWasStoppedBeforeItCameIsNeverUsed) {
  TestWorld world(1);
  TestWorker& worker = *world.workers[0];
  const uint64_t stopped = world.next_epoch;
  worker.engine->PostStop(stopped);
  world.Await([&] { return worker.stopped == stopped; });
  ASSERT_EQ(world.Install({0}), stopped);  // the sidecar repeats the view to a worker that is back
  // When the second answer comes the loop has handled everything that was posted before the first.
  for (int i = 0; i < 2; ++i) {
    {
      std::lock_guard lock(world.mu);
      worker.stopped = 0;
    }
    worker.engine->PostStop(stopped - 1);
    world.Await([&] { return worker.stopped == stopped - 1; });
  }
  const uint64_t next = world.Install({0}, "WorkerLost");
  world.Enter({0});
  EXPECT_EQ(worker.engine->info().membership().epoch, next);
  EXPECT_EQ(worker.installed_views, std::vector<uint64_t>{next});
}

// The job begins again, and its first view broke before any worker had heard of it.
TEST(EngineSidecarTest, AMemberOfTheViewAfterTheFirstOneHasWhatTheJobBeganWith) {
  TestWorld world(0);
  TestWorker& worker = world.AddWorker(/*has_state=*/false);
  WorkerView view;
  view.epoch = world.next_epoch++;
  view.reason = "WorkerLost";
  view.peers = {worker.endpoint->Address()};
  view.workers = {TestWorld::NameOf(0)};
  view.self = 0;
  view.holds = true;
  worker.engine->PostView(view);
  world.Enter({0});
  EXPECT_EQ(worker.engine->info().membership().epoch, view.epoch);
}

TEST(EngineSidecarTest, AViewHasRunWhenAnOperationHasCompletedInIt) {
  TestWorld world(2);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  EXPECT_EQ(world.workers[0]->engine->info().ran_epoch, 0u);
  OnEach(&world, {0, 1}, [&](TestWorker& w) {
    std::vector<float> data(8, 1.0f);
    EXPECT_TRUE(w.Allreduce("a", &data, RM_SUM).ok());
    EXPECT_EQ(w.engine->info().ran_epoch, epoch);
  });
  world.Stop({0, 1});
  world.Install({0, 1}, "WorkerLost");
  world.Await([&] { return world.workers[0]->installed_views.size() == 2; });
  EXPECT_EQ(world.workers[0]->engine->info().ran_epoch, epoch);
}

// No worker has died, so no sidecar makes another view unless one of these two reports the break.
TEST(EngineSidecarTest, AViewThatBreaksBetweenLivingRanksIsToldAndItsOperationIsDoneInTheNext) {
  TestWorld world(2, /*shm=*/false);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  std::vector<float> first(8, 1.0f), second(8, 1.0f);
  std::thread one([&] { EXPECT_TRUE(world.workers[0]->Allreduce("a", &first).ok()); });
  // Rank 0 waits in a round for rank 1; the reset may come at any moment of that.
  EXPECT_GE(support::ResetTcpConnections(), 1);
  std::thread other([&] { EXPECT_TRUE(world.workers[1]->Allreduce("a", &second).ok()); });
  // At least one of them knows which link broke; the other one may see only that its peer has given
  // the view up.
  const auto tells = [&](int id) {
    const auto said = world.workers[id]->broken.find(epoch);
    return said != world.workers[id]->broken.end() && said->second == 1 - id;
  };
  world.Await([&] { return tells(0) || tells(1); });
  world.Stop({0, 1});
  world.Install({0, 1}, "LinkBroken");
  one.join();
  other.join();
  EXPECT_EQ(first, std::vector<float>(8, 2.0f));
  EXPECT_EQ(second, first);
}

TEST(EngineSidecarTest, AViewThatItsSidecarHasStoppedIsNotToldToBeBroken) {
  TestWorld world(2, /*shm=*/false);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  std::vector<float> data(8, 1.0f);
  world.HoldRounds();
  std::thread waits([&] { (void)world.workers[0]->Allreduce("a", &data); });
  world.Await([&] { return world.held == 1; });  // rank 1 has nothing to enter a round for
  world.ReleaseRounds();                         // the stop meets rank 0 in its round
  world.Stop({0, 1});
  {
    std::lock_guard lock(world.mu);
    for (int id : {0, 1}) EXPECT_EQ(world.workers[id]->broken.count(epoch), 0u) << id;
  }
  for (int id : {0, 1}) world.workers[id]->engine->PostEnd({RM_ERR_SHUTDOWN, "the test ends"});
  waits.join();
}

}  // namespace
}  // namespace ringmaster::engine
