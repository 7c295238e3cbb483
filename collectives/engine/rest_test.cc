// A shutdown after which the ranks begin again: what it ends, and what happens if a worker dies
// meanwhile.
#include <gmock/gmock.h>

#include "collectives/engine/engine.h"
#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

using ::testing::Each;

Engine::Clock::time_point Soon() { return Engine::Clock::now() + std::chrono::seconds(30); }

void ExpectSum(TestWorker& w, float expected) {
  std::vector<float> data(10, static_cast<float>(1 << w.id));
  const Status status = w.Allreduce("sum", &data);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(data, Each(expected));
}

TEST(RestTest, RanksBeginAgainAnyNumberOfTimesWithoutWhatWasBefore) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    for (int round = 0; round < 20; ++round) {
      ExpectSum(w, 7);
      EXPECT_EQ(AddSet(w, {0, 2}), 1) << "sets are counted anew";
      std::vector<float> data(3, 1), more(3, 1);
      std::vector<std::shared_ptr<Operation>> alone;
      if (w.id == round % 3) {
        alone = {AskIn(w, 0, "alone", &data)};
      } else if (w.id == (round + 1) % 3) {
        alone = {AskIn(w, 0, "other", &data), AskIn(w, 0, "alone", &more)};
      }
      EXPECT_TRUE(w.engine->Shutdown(Soon()).ok());
      for (const auto& operation : alone) EXPECT_EQ(Await(operation).code(), RM_ERR_SHUTDOWN);
      EXPECT_EQ(Await(AskIn(w, 0, "sum", &data)).code(), RM_ERR_SHUTDOWN);
      EXPECT_FALSE(w.engine->info().MembersOf(1, nullptr, nullptr));
      const Status status = w.engine->Wake(Soon());
      EXPECT_TRUE(status.ok()) << status.message();
    }
    ExpectSum(w, 7);
  });
  EXPECT_EQ(world.workers[0]->finished, 20);
  EXPECT_EQ(world.workers[0]->installed_views.size(), 1u) << "it was the same view all the time";
}

TEST(RestTest, WhoWakesWaitsForAllAndCanGoOnWaiting) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  OnEach(&world, {0, 1}, [](TestWorker& w) { EXPECT_TRUE(w.engine->Shutdown(Soon()).ok()); });
  Engine& early = *world.workers[0]->engine;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(early.Wake(Engine::Clock::now()).code(), RM_ERR_TIMEOUT);
  OnEach(&world, {0, 1}, [](TestWorker& w) {
    EXPECT_TRUE(w.engine->Wake(Soon()).ok());
    ExpectSum(w, 3);
  });
}

TEST(RestTest, WhoDiesWhileAllRestIsMissedByNobody) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) { EXPECT_TRUE(w.engine->Shutdown(Soon()).ok()); });
  world.workers[1]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
  world.Stop({0, 2});
  world.Install({0, 2}, "WorkerLost");
  world.Await([&] {
    return world.workers[0]->installed_views.size() == 2 &&
           world.workers[2]->installed_views.size() == 2;
  });
  std::vector<float> data(1);
  EXPECT_EQ(world.workers[0]->Allreduce("sum", &data).code(), RM_ERR_SHUTDOWN)
      << "a view does not wake it";
  OnEach(&world, {0, 2}, [](TestWorker& w) {
    EXPECT_TRUE(w.engine->Wake(Soon()).ok());
    ExpectSum(w, 5);
  });
}

TEST(RestTest, WhoIsDroppedWhileAllRestHearsItAsItBeginsAgain) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  OnEach(&world, {0, 1}, [](TestWorker& w) { EXPECT_TRUE(w.engine->Shutdown(Soon()).ok()); });
  world.workers[1]->engine->PostDropped("silent for long");
  Engine& dropped = *world.workers[1]->engine;
  for (const auto deadline = Soon(); !dropped.info().dropped && Engine::Clock::now() < deadline;)
    std::this_thread::yield();
  EXPECT_EQ(dropped.Wake(Soon()).code(), RM_ERR_DROPPED);
}

// Two threads of each rank ask for a step end and a shutdown, and both are agreed on in one round.
// A rank that stands at the boundary has to be let go before it rests.
TEST(RestTest, AShutdownThatIsAgreedOnWithAPlannedBoundaryComesAfterIt) {
  for (const bool moves : {true, false}) {
    SCOPED_TRACE(moves ? "the view changes" : "the change is called off");
    TestWorld world(2);
    const uint64_t epoch = world.Install({0, 1});
    world.Enter({0, 1});
    world.HoldRounds();
    std::vector<std::vector<float>> data(2, std::vector<float>(1, 1.0f));
    std::vector<std::shared_ptr<Operation>> held, step, shutdown;
    for (int id : {0, 1}) held.push_back(AskIn(*world.workers[id], 0, "held", &data[id]));
    world.Await([&] { return world.held == 2; });
    for (int id : {0, 1}) {
      world.workers[id]->engine->PostArmed(epoch, true);
      step.push_back(world.workers[id]->Ask({kStepEndName, Kind::kStepEnd}, nullptr, nullptr));
      shutdown.push_back(
          world.workers[id]->Ask({kShutdownName, Kind::kShutdown}, nullptr, nullptr));
    }
    world.ReleaseRounds();
    world.Await(
        [&] { return world.workers[0]->boundary == epoch && world.workers[1]->boundary == epoch; });
    world.StopNothing({0, 1});  // so the round has ended
    for (int id : {0, 1}) {
      EXPECT_TRUE(held[id]->done());
      EXPECT_FALSE(step[id]->done());
      ASSERT_FALSE(shutdown[id]->done()) << "it stands at the boundary and would rest there";
    }
    if (moves) {
      world.Stop({0, 1});
      world.Install({0, 1}, "PodJoined");
    } else {
      for (int id : {0, 1}) world.workers[id]->engine->PostArmed(epoch, false);
    }
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      EXPECT_TRUE(Await(step[w.id]).ok());
      EXPECT_TRUE(Await(shutdown[w.id]).ok());
      EXPECT_TRUE(w.engine->Wake(Soon()).ok());
      ExpectSum(w, 3);
    });
  }
}

// The view changes before the ranks rest, and only the shutdown runs in the new one; or the view
// changes while they rest.
TEST(RestTest, ARestIsNoPartOfTheRebuildBeforeIt) {
  for (const bool before : {true, false}) {
    SCOPED_TRACE(before ? "before" : "meanwhile");
    TestWorld world(3);
    world.Install({0, 1, 2});
    world.Enter({0, 1, 2});
    const auto shut_down = [](TestWorker& w) { EXPECT_TRUE(w.engine->Shutdown(Soon()).ok()); };
    if (!before) OnEach(&world, {0, 1, 2}, shut_down);
    const auto from = Engine::Clock::now();
    world.workers[1]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
    world.Stop({0, 2});
    const uint64_t epoch = world.Install({0, 2}, "WorkerLost");
    world.Await([&] {
      return world.workers[0]->installed_views.back() == epoch &&
             world.workers[2]->installed_views.back() == epoch;
    });
    if (before) OnEach(&world, {0, 2}, shut_down);
    world.StopNothing({0, 2});  // so the view has been entered
    const auto rebuilt = Engine::Clock::now();
    while (Engine::Clock::now() - rebuilt < rebuilt - from) std::this_thread::yield();
    OnEach(&world, {0, 2}, [&](TestWorker& w) {
      EXPECT_TRUE(w.engine->Wake(Soon()).ok());
      ExpectSum(w, 5);
      const RebuildTimes times = w.engine->info().last_rebuild();
      EXPECT_EQ(times.epoch, epoch);
      EXPECT_LE(times.resume, std::chrono::duration<double>(rebuilt - from).count());
      EXPECT_LE(from, times.noticed);
      EXPECT_LE(times.noticed, times.stop_asked);
      EXPECT_LE(times.stop_asked, times.decided);
    });
  }
}

// A worker dies at each call that the agreement makes, for several subsets of the others that have
// completed it.
TEST(RestTest, WhoDiesInTheShutdownIsMissedByNobody) {
  int points = 0;
  bool reached = true;
  for (int call = 2; reached; ++call) {
    for (const auto& completes : {std::set<int>{}, {0}, {2}, {0, 2}}) {
      SCOPED_TRACE("call " + std::to_string(call) + " completed by " +
                   testing::PrintToString(completes));
      TestWorld world(3);
      const uint64_t epoch = world.next_epoch;
      world.faults[epoch] = {call, completes};
      world.Install({0, 1, 2});
      world.Enter({0, 1, 2});
      std::vector<std::thread> threads;
      std::map<int, Status> ended;  // guarded by world.mu
      for (int id : {0, 1, 2}) {
        threads.emplace_back([&world, &ended, id] {
          const Status status = world.workers[id]->engine->Shutdown(Soon());
          std::lock_guard lock(world.mu);
          ended[id] = status;
          world.changed.notify_all();
        });
      }
      world.Await([&] {
        reached = world.past_fault[epoch].size() == 3;
        return reached || ended.size() == 3;
      });
      world.workers[1]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
      world.Stop({0, 2});
      world.Install({0, 2}, "WorkerLost");
      for (auto& thread : threads) thread.join();
      for (int id : {0, 2}) EXPECT_TRUE(ended[id].ok()) << id << ": " << ended[id].message();
      OnEach(&world, {0, 2}, [](TestWorker& w) {
        EXPECT_TRUE(w.engine->Wake(Soon()).ok());
        ExpectSum(w, 5);
        EXPECT_TRUE(w.engine->Shutdown(Soon()).ok());
      });
      if (!reached || testing::Test::HasFailure()) break;
      ++points;
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(points, 3 * 4) << "a round, the operation and the barrier behind it";
}

}  // namespace
}  // namespace ringmaster::engine
