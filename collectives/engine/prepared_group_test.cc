// Prepared groups: one operation over tensors that lie apart.
#include <gmock/gmock.h>

#include "collectives/engine/engine.h"
#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Tensors = std::vector<std::vector<double>>;

Tensors Ones(const std::vector<size_t>& sizes) {
  Tensors tensors;
  for (size_t size : sizes) tensors.emplace_back(size, 1.0);
  return tensors;
}

class PreparedGroupOverBothPaths : public testing::TestWithParam<bool> {};

TEST_P(PreparedGroupOverBothPaths, EveryTensorGetsItsSumInPlaceOrBesideItAgainAndAgain) {
  TestWorld world(3, GetParam());
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    for (int pass = 0; pass < 4; ++pass) {
      Tensors in_place = Ones({3, 70000, 0, 1}), in = Ones({5, 600}), out = Ones({5, 600});
      const auto first = AskPrepared(w, "in place", &in_place);
      const auto second = AskPrepared(w, "beside", &in, &out);
      ASSERT_TRUE(Await(first).ok()) << first->status().message();
      ASSERT_TRUE(Await(second).ok()) << second->status().message();
      for (const auto& tensor : in_place) EXPECT_THAT(tensor, Each(3.0)) << pass;
      for (const auto& tensor : in) EXPECT_THAT(tensor, Each(1.0)) << pass;
      for (const auto& tensor : out) EXPECT_THAT(tensor, Each(3.0)) << pass;
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Paths, PreparedGroupOverBothPaths, testing::Bool(),
                         [](const auto& info) { return info.param ? "SharedMemory" : "Tcp"; });

TEST(PreparedGroupTest, ItsManyTensorsAreOneCallOfTheCommunicatorAndOneRound) {
  TestWorld world(2);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  const auto calls = [&] {
    std::lock_guard lock(world.mu);
    return world.most_calls[epoch];
  };
  const auto reduce = [&](size_t tensors) {
    OnEach(&world, {0, 1}, [&](TestWorker& w) {
      Tensors data = Ones(std::vector<size_t>(tensors, 10));
      EXPECT_TRUE(Await(AskPrepared(w, "group", &data)).ok());
      for (const auto& tensor : data) EXPECT_THAT(tensor, Each(2.0));
    });
  };
  reduce(200);
  const int before = calls();
  reduce(200);
  EXPECT_EQ(calls() - before, 2) << "the vote of a round, and the reduction";
}

TEST(PreparedGroupTest, RanksThatPreparedOtherTensorsAllHearWhichOneDiffersAlsoFromTheCache) {
  const struct {
    std::vector<size_t> others;  // of rank 1
    const char* says;
  } cases[] = {
      {{4, 5, 7}, "shape of tensor 2 of the prepared group is [6] on ranks 0,2 and [7] on rank 1"},
      {{5, 4, 6}, "shape of tensor 0 of the prepared group is [4] on ranks 0,2 and [5] on rank 1"},
      {{4, 11}, "number of tensors in the prepared group is 3 on ranks 0,2 and 2 on rank 1"},
      {{}, "number of tensors in the prepared group is 3 on ranks 0,2 and none on rank 1"}};
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  std::mutex mu;
  for (const auto& one : cases) {
    std::set<std::string> messages;
    OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
      for (int pass = 0; pass < 3; ++pass) {
        const bool differs = w.id == 1 && pass == 1;
        Tensors data = Ones(differs ? one.others : std::vector<size_t>{4, 5, 6});
        std::vector<double> single(15, 1.0);
        const auto asked = differs && one.others.empty()
                               ? w.Ask({"group", Kind::kAllreduce, RM_FLOAT64, RM_SUM, "", 15},
                                       single.data(), single.data())
                               : AskPrepared(w, "group", &data);
        const Status status = Await(asked);
        EXPECT_EQ(status.code(), pass == 1 ? RM_ERR_MISMATCH : RM_OK) << status.message();
        for (const auto& tensor : data) EXPECT_THAT(tensor, Each(pass == 1 ? 1.0 : 3.0));
        std::lock_guard lock(mu);
        if (!status.ok()) messages.insert(status.message());
      }
    });
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_THAT(*messages.begin(), HasSubstr("tensor 'group' differs between ranks: "));
    EXPECT_THAT(*messages.begin(), HasSubstr(one.says));
  }
}

TEST(PreparedGroupTest, ARankThatHasJoinedAddsNothingToIt) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  OnEach(&world, {0, 1}, [](TestWorker& w) {
    for (int pass = 0; w.id == 0 && pass < 3; ++pass) {
      Tensors data = Ones({3, 40000});
      ASSERT_TRUE(Await(AskPrepared(w, "group", &data)).ok());
      for (const auto& tensor : data) EXPECT_THAT(tensor, Each(1.0));
    }
    EXPECT_EQ(Join(w), 0);
  });
}

TEST(PreparedGroupTest, InAProcessSetItIsOfItsMembers) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    const int set = AddSet(w, {0, 2});
    for (int pass = 0; w.id != 1 && pass < 3; ++pass) {
      Tensors data = Ones({3, 40000});
      ASSERT_TRUE(Await(AskPrepared(w, "group", &data, nullptr, set)).ok());
      for (const auto& tensor : data) EXPECT_THAT(tensor, Each(2.0));
    }
    EXPECT_TRUE(RemoveSet(w, set).ok());
    Tensors data = Ones({3});
    if (w.id != 1) {
      EXPECT_EQ(Await(AskPrepared(w, "group", &data, nullptr, set)).code(), RM_ERR_INVALID);
    }
  });
}

TEST(PreparedGroupTest, ItIsInFlightOnceAtATime) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  Tensors one = Ones({2, 3}), again = one, peer = one;
  const auto first = AskPrepared(*world.workers[0], "group", &one);
  EXPECT_EQ(Await(AskPrepared(*world.workers[0], "group", &again)).code(), RM_ERR_INVALID);
  EXPECT_TRUE(Await(AskPrepared(*world.workers[1], "group", &peer)).ok());
  EXPECT_TRUE(Await(first).ok());
  EXPECT_THAT(one[1], Each(2.0));
}

}  // namespace
}  // namespace ringmaster::engine
