// Stalls: which ranks are reported as missing, and when the report ends.
#include <gmock/gmock.h>

#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class EngineStallTest : public testing::Test {
 protected:
  void Begin(int ranks, StallLimits limits = {milliseconds(50)}) {
    world_ = std::make_unique<TestWorld>(ranks, true, limits);
    for (int id = 0; id < ranks; ++id) all_.push_back(id);
    world_->Install(all_);
    world_->Enter(all_);
  }
  std::shared_ptr<Operation> Ask(int id, const std::string& name, int32_t set = 0) {
    Request request{name, Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1.0, 1.0};
    request.process_set = set;
    return world_->workers[id]->Ask(request, &value_, &results_[id]);
  }
  static Status Wait(const std::shared_ptr<Operation>& operation) {
    if (!operation->WaitUntil(Engine::Clock::now() + seconds(30))) return {RM_ERR_TIMEOUT, "hangs"};
    return operation->status();
  }
  // Waits until the newest stalls that this worker reports are `so`, and returns these.
  std::vector<job::Stall> AwaitStalls(
      int id, const std::function<bool(const std::vector<job::Stall>&)>& so) {
    std::vector<job::Stall> found;
    world_->Await([&] {
      found = world_->workers[id]->stalls;
      return so(found);
    });
    return found;
  }
  // The stall may be reported anew at any time, so a copy of the one that was awaited is returned.
  job::Stall AwaitMissing(int id, const std::string& tensor, const std::vector<int>& missing) {
    const auto found = AwaitStalls(id, [&](const auto& stalls) {
      return stalls.size() == 1 && stalls[0].tensor == tensor && stalls[0].missing == missing;
    });
    return found.empty() ? job::Stall() : found[0];
  }
  void AwaitNone(int id) {
    AwaitStalls(id, [](const auto& stalls) { return stalls.empty(); });
  }

  std::vector<int> all_;
  const float value_ = 1;
  float results_[4] = {};
  std::unique_ptr<TestWorld> world_;
};

TEST_F(EngineStallTest, ARankThatNeverAsksIsKnownAndWhenItComesTheStallIsOver) {
  Begin(4);
  const auto a = Ask(0, "x"), b = Ask(2, "x"), c = Ask(3, "x");
  const job::Stall stall = AwaitMissing(0, "x", {1});
  EXPECT_EQ(stall.waiting, (std::vector<int>{0, 2, 3}));
  EXPECT_GE(stall.waited_ms, 50);
  const auto late = Ask(1, "x");
  for (const auto& operation : {a, b, c, late}) EXPECT_TRUE(Wait(operation).ok());
  AwaitNone(0);
  std::lock_guard lock(world_->mu);
  for (int other : {1, 2, 3}) EXPECT_TRUE(world_->workers[other]->stalls.empty());
}

TEST_F(EngineStallTest, SoIsOneThatHasAskedForItOftenBefore) {
  Begin(3);
  for (int pass = 0; pass < 3; ++pass) {
    const auto a = Ask(0, "x"), b = Ask(1, "x"), c = Ask(2, "x");
    for (const auto& operation : {a, b, c}) ASSERT_TRUE(Wait(operation).ok());
  }
  const auto a = Ask(1, "x"), b = Ask(2, "x");  // "x" is in the cache by now
  EXPECT_EQ(AwaitMissing(1, "x", {0}).waiting, (std::vector<int>{1, 2}));
  const auto late = Ask(0, "x");
  for (const auto& operation : {a, b, late}) EXPECT_TRUE(Wait(operation).ok());
  AwaitNone(1);
  const auto again = Ask(0, "x"), too = Ask(1, "x"), three = Ask(2, "x");
  for (const auto& operation : {again, too, three}) EXPECT_TRUE(Wait(operation).ok());
}

TEST_F(EngineStallTest, ARankThatAsksForSomethingElseIsMissingToo) {
  Begin(2);
  const auto a = Ask(0, "x"), b = Ask(1, "y");
  AwaitMissing(0, "x", {1});
  AwaitMissing(1, "y", {0});
  const auto c = Ask(0, "y"), d = Ask(1, "x");
  for (const auto& operation : {a, b, c, d}) EXPECT_TRUE(Wait(operation).ok());
  AwaitNone(0);
  AwaitNone(1);
}

TEST_F(EngineStallTest, AViewThatEndsEndsItsStalls) {
  Begin(3);
  const auto a = Ask(0, "x"), b = Ask(2, "x");
  AwaitMissing(0, "x", {1});
  world_->Stop(all_);
  AwaitNone(0);
  world_->Install({0, 2}, "PodLost");
  EXPECT_TRUE(Wait(a).ok());
  EXPECT_TRUE(Wait(b).ok());
}

TEST_F(EngineStallTest, WhereAskedToTheWaitingGiveUp) {
  Begin(2, {milliseconds(20), milliseconds(100)});
  const Status status = Wait(Ask(0, "x"));
  EXPECT_EQ(status.code(), RM_ERR_TIMEOUT);
  EXPECT_THAT(status.message(), HasSubstr("'x': asked for by rank 0, not by rank 1"));
  EXPECT_EQ(Wait(Ask(0, "y")).code(), RM_ERR_TIMEOUT) << "it is over for good";
}

// The script of one rank has fewer batches than those of the others, and has ended already.
TEST_F(EngineStallTest, ARankThatIsMissedBecauseItShutsDownIsSaidToDoSo) {
  Begin(3);
  const auto a = Ask(0, "x"), b = Ask(2, "x");
  const auto shut = world_->workers[1]->Ask({kShutdownName, Kind::kShutdown}, nullptr, nullptr);
  const auto stalls = AwaitStalls(
      0, [](const auto& all) { return all.size() == 1 && !all[0].in_shutdown.empty(); });
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].missing, std::vector<int>{1});
  EXPECT_EQ(stalls[0].in_shutdown, std::vector<int>{1});
}

// One rank evaluates what all have trained, for as long as it likes.
TEST_F(EngineStallTest, AShutdownThatWaitsSaysForWhomAndIsNotGivenUp) {
  Begin(2, {milliseconds(20), milliseconds(40)});
  const auto shut = world_->workers[1]->Ask({kShutdownName, Kind::kShutdown}, nullptr, nullptr);
  const auto stalls = AwaitStalls(
      1, [](const auto& all) { return all.size() == 1 && all[0].tensor == "shutdown"; });
  ASSERT_EQ(stalls.size(), 1u);
  EXPECT_EQ(stalls[0].missing, std::vector<int>{0});
  std::this_thread::sleep_for(milliseconds(100));
  const auto late = world_->workers[0]->Ask({kShutdownName, Kind::kShutdown}, nullptr, nullptr);
  for (const auto& operation : {shut, late}) EXPECT_TRUE(Wait(operation).ok());
}

TEST_F(EngineStallTest, RanksThatHaveNothingToDoAreNotMissedAndWorkOnWhenTheyHave) {
  Begin(3, {milliseconds(40)});
  std::this_thread::sleep_for(milliseconds(300));
  const auto a = Ask(0, "x"), b = Ask(1, "x"), c = Ask(2, "x");
  for (const auto& operation : {a, b, c}) EXPECT_TRUE(Wait(operation).ok());
  std::lock_guard lock(world_->mu);
  for (const auto& worker : world_->workers) EXPECT_EQ(worker->told_stalls, 0);
}

}  // namespace
}  // namespace ringmaster::engine
