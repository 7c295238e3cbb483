// What one rank sends and another receives.
#include <gmock/gmock.h>

#include "collectives/engine/engine.h"
#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class TransferTest : public ::testing::TestWithParam<bool> {
 protected:
  void Enter(TestWorld* world, const std::vector<int>& ids) {
    world->Install(ids);
    world->Enter(ids);
  }
};
INSTANTIATE_TEST_SUITE_P(Paths, TransferTest, ::testing::Values(true, false),
                         [](const auto& shm) { return shm.param ? "Shm" : "Tcp"; });

TEST_P(TransferTest, TwoRanksNeedNoOther) {
  // The other two ranks enter rounds although they have nothing to ask for, even if stalls are not
  // watched for.
  TestWorld world(4, GetParam(),
                  GetParam() ? StallLimits{.tell = std::chrono::milliseconds(400)} : StallLimits{});
  Enter(&world, {0, 1, 2, 3});
  OnEach(&world, {0, 3}, [](TestWorker& w) {
    for (int pass = 0; pass < 50; ++pass) {
      std::vector<float> data(pass == 7 ? 100'000 : 5, static_cast<float>(pass + w.id));
      EXPECT_TRUE(Await(AskTransfer(w, 0, 3, "there", &data)).ok());
      EXPECT_THAT(data, Each(static_cast<float>(pass)));
      data.assign(data.size(), static_cast<float>(pass * 10 + w.id));
      EXPECT_TRUE(Await(AskTransfer(w, 3, 0, "and back", &data)).ok());
      EXPECT_THAT(data, Each(static_cast<float>(pass * 10 + 3)));
    }
  });
}

TEST_P(TransferTest, AllSendToAllAtOnceAndANameMayBeInUseBetweenSeveralPairs) {
  TestWorld world(4, GetParam());
  Enter(&world, {0, 1, 2, 3});
  OnEach(&world, {0, 1, 2, 3}, [](TestWorker& w) {
    for (int pass = 0; pass < 3; ++pass) {
      std::vector<std::vector<float>> data(12, std::vector<float>(3));
      std::vector<std::shared_ptr<Operation>> operations;
      for (int from = 0, at = 0; from < 4; ++from) {
        for (int to = 0; to < 4; ++to) {
          if (from == to) continue;
          data[at].assign(3, static_cast<float>(from * 10 + to));
          if (to == w.id) data[at].assign(3, -1);
          if (from == w.id || to == w.id) {
            operations.push_back(AskTransfer(w, from, to, "x", &data[at]));
          }
          ++at;
        }
      }
      for (const auto& operation : operations) {
        EXPECT_TRUE(Await(operation).ok()) << operation->status().message();
      }
      for (int from = 0, at = 0; from < 4; ++from) {
        for (int to = 0; to < 4; ++to) {
          if (from == to) continue;
          EXPECT_THAT(data[at++], Each(static_cast<float>(from * 10 + to)));
        }
      }
      const int first = w.id / 2 * 2;
      std::vector<float> pair(2, static_cast<float>(w.id)), all(2, 1.0f);
      EXPECT_TRUE(Await(AskTransfer(w, first, first + 1, "x", &pair)).ok());
      EXPECT_THAT(pair, Each(static_cast<float>(first)));
      EXPECT_TRUE(w.Allreduce("x", &all).ok());
      EXPECT_THAT(all, Each(4.0f));
    }
  });
}

TEST_P(TransferTest, WhatDiffersIsToldToBothAlikeAndTheJobGoesOn) {
  TestWorld world(3, GetParam());
  Enter(&world, {0, 1, 2});
  std::mutex mu;
  std::multiset<std::string> messages;
  OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
    for (int pass = 0; pass < 2 && w.id != 1; ++pass) {
      std::vector<float> data(4, static_cast<float>(w.id));
      EXPECT_TRUE(Await(AskTransfer(w, 0, 2, "x", &data)).ok());
      std::vector<float> other(w.id == 0 ? 4 : 5);
      const Status size = Await(AskTransfer(w, 0, 2, "x", &other));
      EXPECT_EQ(size.code(), RM_ERR_MISMATCH);
      const Status type =
          Await(AskTransfer(w, 0, 2, "x", &data, w.id == 0 ? RM_FLOAT32 : RM_INT32));
      EXPECT_EQ(type.code(), RM_ERR_MISMATCH);
      std::lock_guard lock(mu);
      messages.insert(size.message() + type.message());
    }
    std::vector<float> all(2, 1.0f);
    EXPECT_TRUE(w.Allreduce("after", &all).ok());
    EXPECT_THAT(all, Each(3.0f));
  });
  EXPECT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages.count(*messages.begin()), 4u) << *messages.begin() << *messages.rbegin();
  EXPECT_THAT(*messages.begin(), HasSubstr("element count is 4 on rank 0 and 5 on rank 2"));
  EXPECT_THAT(*messages.begin(), HasSubstr("dtype is float32 on rank 0 and int32 on rank 2"));
}

TEST(TransferTest, BothHaveToBeInTheProcessSet) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    const int set = AddSet(w, {0, 1});
    std::vector<float> data(2, static_cast<float>(w.id));
    if (w.id < 2) {
      EXPECT_TRUE(Await(AskTransfer(w, 1, 0, "x", &data, RM_FLOAT32, set)).ok());
      EXPECT_THAT(data, Each(1.0f));
    }
    if (w.id == 0) {
      const Status status = Await(AskTransfer(w, 0, 2, "x", &data, RM_FLOAT32, set));
      EXPECT_EQ(status.code(), RM_ERR_INVALID);
      EXPECT_THAT(status.message(), HasSubstr("worker 2 is not in process set 1"));
    }
    if (w.id == 2) {
      EXPECT_THAT(Await(AskTransfer(w, 0, 2, "x", &data, RM_FLOAT32, set)).message(),
                  HasSubstr("not in process set 1"));
    }
  });
}

TEST(TransferTest, WhoHasJoinedSendsAndReceivesNothing) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    std::vector<float> data(2, static_cast<float>(w.id));
    if (w.id != 1) {
      EXPECT_TRUE(Await(AskTransfer(w, 0, 2, "x", &data)).ok());
      EXPECT_TRUE(Await(AskTransfer(w, 0, 2, "x", &data)).ok());
    }
    if (w.id == 0) {
      const Status lost = Await(AskTransfer(w, 0, 2, "x", &data));
      EXPECT_EQ(lost.code(), RM_ERR_INVALID);
      EXPECT_THAT(lost.message(), HasSubstr("'x' from worker 0 to worker 2: worker 2 has joined"));
    }
    EXPECT_GE(Join(w), 0);
  });
}

}  // namespace
}  // namespace ringmaster::engine
