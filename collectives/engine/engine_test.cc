#include "collectives/engine/engine.h"

#include <gmock/gmock.h>

#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"

namespace ringmaster::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(EngineTest, SumsAndAveragesOverAllRanks) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    std::vector<float> sum(1000, static_cast<float>(w.id + 1)),
        average(7, static_cast<float>(w.id));
    EXPECT_TRUE(w.Allreduce("sum", &sum).ok());
    EXPECT_TRUE(w.Allreduce("average", &average, RM_AVERAGE).ok());
    EXPECT_THAT(sum, Each(6.0f));
    EXPECT_THAT(average, Each(1.0f));
  });
}

TEST(EngineTest, ScalesBeforeAndAfter) {
  TestWorld world(2);
  world.Install({0, 1});
  OnEach(&world, {0, 1}, [](TestWorker& w) {
    std::vector<float> in(5, 3.0f), out(5);
    auto op =
        w.Ask({"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 5, 0.5, 10.0}, in.data(), out.data());
    ASSERT_TRUE(op->WaitUntil(Engine::Clock::now() + std::chrono::seconds(30)));
    EXPECT_THAT(out, Each(30.0f));
    EXPECT_THAT(in, Each(3.0f));
  });
}

TEST(EngineTest, AnyOrderFromManyThreadsEndsWithTheSameResults) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  constexpr int kThreads = 4, kTensors = 23;
  OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&w, t] {
        struct Asked {
          std::shared_ptr<Operation> operation;
          std::shared_ptr<std::vector<float>> data;
          float expected;
        };
        std::vector<Asked> asked;
        for (int i = 0; i < kTensors; ++i) {
          // Each rank asks in an order of its own, and twice, so that the cache is used, too.
          const int which = (i * (2 * w.id + 1) + w.id) % kTensors;
          for (int pass = 0; pass < 2; ++pass) {
            auto data =
                std::make_shared<std::vector<float>>(50 + which, static_cast<float>(t + which));
            auto operation = w.Ask(
                {"t" + std::to_string(t) + "." + std::to_string(which) + "." + std::to_string(pass),
                 Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", data->size(), 1.0, 1.0},
                data->data(), data->data());
            asked.push_back({operation, data, 3.0f * (t + which)});
          }
        }
        for (auto& [operation, data, expected] : asked) {
          ASSERT_TRUE(operation->WaitUntil(Engine::Clock::now() + std::chrono::seconds(30)));
          ASSERT_TRUE(operation->status().ok()) << operation->status().message();
          EXPECT_THAT(*data, Each(expected));
        }
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

TEST(EngineTest, GathersRaggedRowsAndBroadcastsFromTheRoot) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    std::vector<int32_t> rows(2 * w.id, w.id), data(4, w.id == 1 ? 42 : 0);
    auto gather =
        w.Ask({"g", Kind::kAllgather, RM_INT32, RM_SUM, "", 2, 1, 1}, rows.data(), nullptr, w.id);
    auto broadcast =
        w.Ask({"b", Kind::kBroadcast, RM_INT32, RM_SUM, w.engine->info().WorkerAt(1), 4, 1, 1},
              data.data(), data.data());
    ASSERT_TRUE(gather->WaitUntil(Engine::Clock::now() + std::chrono::seconds(30)));
    ASSERT_TRUE(broadcast->WaitUntil(Engine::Clock::now() + std::chrono::seconds(30)));
    EXPECT_EQ(gather->rows_by_rank, (std::vector<size_t>{0, 1, 2}));
    const auto* got = reinterpret_cast<const int32_t*>(gather->gathered->data());
    EXPECT_EQ(std::vector<int32_t>(got, got + 6), (std::vector<int32_t>{1, 1, 2, 2, 2, 2}));
    EXPECT_THAT(data, Each(42));
  });
}

TEST(EngineTest, WrongUseGivesEveryRankTheSameErrorAndTheJobGoesOn) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  std::mutex mu;
  std::set<std::string> messages;
  OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
    for (int pass = 0; pass < 3; ++pass) {
      std::vector<float> same(8, 1.0f), other(w.id == 1 && pass == 1 ? 5 : 4);
      EXPECT_TRUE(w.Allreduce("good", &same).ok());
      EXPECT_THAT(same, Each(3.0f));
      const Status status = w.Allreduce("bad", &other);  // the second time its name is in the cache
      EXPECT_EQ(status.code(), pass == 1 ? RM_ERR_MISMATCH : RM_OK) << status.message();
      if (pass != 1) continue;
      std::lock_guard lock(mu);
      messages.insert(status.message());
    }
  });
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(*messages.begin(), HasSubstr("'bad'"));
  EXPECT_THAT(*messages.begin(), HasSubstr("element count is 4 on ranks 0,2 and 5 on rank 1"));
}

TEST(EngineTest, ANameInFlightIsRefused) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  std::vector<float> data(4, 1.0f), again(4, 1.0f);
  auto first = world.workers[0]->Ask({"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 4, 1, 1},
                                     data.data(), data.data());
  EXPECT_EQ(world.workers[0]->Allreduce("x", &again).code(), RM_ERR_INVALID);
  std::vector<float> peer(4, 1.0f);
  EXPECT_TRUE(world.workers[1]->Allreduce("x", &peer).ok());
  ASSERT_TRUE(first->WaitUntil(Engine::Clock::now() + std::chrono::seconds(30)));
  EXPECT_TRUE(first->status().ok()) << first->status().message();
  EXPECT_THAT(data, Each(2.0f));
  EXPECT_THAT(again, Each(1.0f)) << "what was refused is left alone";
}

TEST(EngineTest, SmallAllreducesThatAreReadyTogetherAreOneCallOfTheCommunicator) {
  TestWorld world(2);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  const auto burst = [&] {
    OnEach(&world, {0, 1}, [](TestWorker& w) {
      std::vector<std::vector<float>> data(50, std::vector<float>(10, 1.0f));
      std::vector<std::shared_ptr<Operation>> operations;
      for (int i = 0; i < 50; ++i) {
        operations.push_back(
            w.Ask({"f" + std::to_string(i), Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 10, 1, 1},
                  data[i].data(), data[i].data()));
      }
      for (auto& operation : operations)
        operation->WaitUntil(Engine::Clock::now() + std::chrono::seconds(30));
      for (auto& d : data) EXPECT_THAT(d, Each(2.0f));
    });
  };
  burst();
  int before, after;
  {
    std::lock_guard lock(world.mu);
    before = world.most_calls[epoch];
  }
  burst();
  {
    std::lock_guard lock(world.mu);
    after = world.most_calls[epoch];
  }
  EXPECT_LT(after - before, 50);  // without fusion: at least one for each tensor, and the votes
}

struct Prioritised {
  std::string name;
  size_t count;        // of floats
  int32_t by_rank[2];  // priorities
};

// The number of floats in each allreduce, in their order, when both ranks have asked for all of
// `tensors` at once.
std::vector<size_t> OnWire(TestWorld* world, const std::vector<Prioritised>& tensors) {
  std::vector<std::vector<float>> data;
  data.reserve(2 * (tensors.size() + 1));
  std::vector<std::shared_ptr<Operation>> asked;
  const auto ask = [&](int id, const std::string& name, size_t count, int32_t priority) {
    data.emplace_back(count, 1.0f);
    Request request{name, Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", count, 1, 1};
    request.priority = priority;
    asked.push_back(world->workers[id]->Ask(request, data.back().data(), data.back().data()));
  };
  world->HoldRounds();
  for (int id : {0, 1}) ask(id, "held", 1, 0);
  world->Await([&] { return world->held == 2; });
  for (int id : {0, 1}) {
    for (const auto& [name, count, by_rank] : tensors) ask(id, name, count, by_rank[id]);
  }
  world->ReleaseRounds();
  for (const auto& operation : asked) EXPECT_TRUE(Await(operation).ok());
  std::lock_guard lock(world->mu);
  EXPECT_EQ(world->workers[0]->on_wire, world->workers[1]->on_wire);
  std::vector<size_t> wire = world->workers[0]->on_wire;
  for (auto& worker : world->workers) worker->on_wire.clear();
  wire.erase(wire.begin());  // the operation by which the ranks were held
  return wire;
}

TEST(EngineTest, OfWhatIsReadyTogetherTheMostUrgentIsFirstOnTheWire) {
  TestWorld world(2, /*shm=*/false);
  world.Install({0, 1});
  world.Enter({0, 1});
  const std::vector<Prioritised> tensors = {
      {"last", 50'000, {2, 2}}, {"second", 50'001, {1, 1}}, {"first", 50'002, {-1, -1}}};
  for (int pass = 0; pass < 3; ++pass)
    EXPECT_EQ(OnWire(&world, tensors), (std::vector<size_t>{50'002, 50'001, 50'000})) << pass;
}

TEST(EngineTest, WhatOneRankDoesNotWantFusedIsFusedOnNoRank) {
  const std::vector<Prioritised> tensors = {{"a", 20, {}}, {"b", 10, {}}};
  const auto wire = [&](std::map<int, size_t> fusion_bytes) {
    TestWorld world(2, /*shm=*/true, {}, {}, std::move(fusion_bytes));
    world.Install({0, 1});
    world.Enter({0, 1});
    return OnWire(&world, tensors);
  };
  EXPECT_THAT(wire({}), ElementsAre(30));
  EXPECT_THAT(wire({{1, 0}}), ElementsAre(20, 10));
}

TEST(EngineTest, RanksThatDifferInPrioritiesRunInOneOrderAndSayThemOnlyOnce) {
  TestWorld world(2, /*shm=*/false);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  const auto calls = [&] {
    std::lock_guard lock(world.mu);
    return world.most_calls[epoch];
  };
  std::vector<Prioritised> tensors = {{"a", 50'000, {1, 2}}, {"b", 50'001, {2, 1}}};
  const std::vector<size_t> rank_0s = {50'000, 50'001}, others = {50'001, 50'000};
  EXPECT_EQ(OnWire(&world, tensors), rank_0s);
  for (int pass = 0; pass < 2; ++pass) {
    const int before = calls();
    EXPECT_EQ(OnWire(&world, tensors), rank_0s);
    EXPECT_EQ(calls() - before, 2 + 3) << "two rounds without an announcement";
  }
  tensors[0].by_rank[0] = 3;
  EXPECT_EQ(OnWire(&world, tensors), others) << "a priority that changes is heard";
  const int before = calls();
  EXPECT_EQ(OnWire(&world, tensors), others);
  EXPECT_EQ(calls() - before, 2 + 3);
}

TEST(EngineTest, AGroupOfAnySizesAndTypesRunsAsOneAndAgainFromTheCache) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    for (int pass = 0; pass < 3; ++pass) {
      // The second is larger than the fusion buffer.
      std::vector<std::vector<float>> data = {std::vector<float>(3, 1.0f),
                                              std::vector<float>(300000, 2.0f),
                                              std::vector<float>(5, 3.0f)};
      const auto group = AskGroup(w, {"a", "b", "c"}, &data);
      for (const auto& operation : group) ASSERT_TRUE(Await(operation).ok());
      for (int i = 0; i < 3; ++i) EXPECT_THAT(data[i], Each(3.0f * static_cast<float>(i + 1)));
    }
  });
}

TEST(EngineTest, IfOneOfAGroupDiffersAllOfItFailsOnAllRanksAlsoFromTheCache) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  std::mutex mu;
  std::set<std::string> messages;
  OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
    for (int pass = 0; pass < 4; ++pass) {
      std::vector<std::vector<float>> data(3, std::vector<float>(8, 1.0f));
      if (pass % 2 == 1 && w.id == 1) data[1].resize(7);
      const auto group = AskGroup(w, {"a", "b", "c"}, &data);
      for (const auto& operation : group) {
        const Status status = Await(operation);
        EXPECT_EQ(status.code(), pass % 2 == 1 ? RM_ERR_MISMATCH : RM_OK) << status.message();
        std::lock_guard lock(mu);
        if (!status.ok()) messages.insert(status.message());
      }
      EXPECT_THAT(data[0], Each(pass % 2 == 1 ? 1.0f : 3.0f)) << "none of it, or all";
    }
  });
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(*messages.begin(), HasSubstr("element count is 8 on ranks 0,2 and 7 on rank 1"));
}

TEST(EngineTest, RanksThatDisagreeOnAGroupAllHearIt) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
    std::vector<std::vector<float>> data(3, std::vector<float>(2, 1.0f));
    for (int pass = 0; pass < 3; ++pass) {
      // Rank 1 has another group, the same group in another order, or no group.
      std::vector<std::string> names = {"a", "b", "c"};
      if (w.id == 1 && pass == 0) names = {"a", "b"};
      if (w.id == 1 && pass == 1) names = {"a", "c", "b"};
      if (w.id == 1 && pass == 2) names = {"a"};
      auto asked = AskGroup(w, names, &data);
      if (w.id == 1 && pass == 2) {
        EXPECT_EQ(asked[0]->request.group.size, 1u);
      }
      for (const auto& operation : asked) EXPECT_EQ(Await(operation).code(), RM_ERR_MISMATCH);
    }
    std::vector<float> good(4, 1.0f);
    EXPECT_TRUE(w.Allreduce("a", &good).ok());
    EXPECT_THAT(good, Each(3.0f));
  });
}

TEST(EngineTest, OfAGroupWithANameInFlightNothingIsTaken) {
  TestWorld world(1);
  world.Install({0});
  world.Enter({0});
  std::vector<std::vector<float>> data(3, std::vector<float>(2, 1.0f));
  for (const auto& operation : AskGroup(*world.workers[0], {"a", "b", "a"}, &data)) {
    EXPECT_EQ(Await(operation).code(), RM_ERR_INVALID);
  }
  for (const auto& operation : AskGroup(*world.workers[0], {"a", "b", "c"}, &data)) {
    EXPECT_TRUE(Await(operation).ok());
  }
}

TEST(EngineTest, WhatOneRankSaysIsWrongFailsOnAllWithItsWords) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [&](TestWorker& w) {
    std::vector<float> mine(2, 1.0f);
    Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 2, 1, 1};
    if (w.id == 2) request.problem = "it is no good";
    const Status status = Await(w.Ask(std::move(request), mine.data(), mine.data()));
    EXPECT_EQ(status.code(), RM_ERR_INVALID);
    EXPECT_EQ(status.message(), "tensor 'x': it is no good on rank 2");
    EXPECT_TRUE(w.Allreduce("x", &mine).ok());
  });
}

TEST(EngineTest, AReducescatterGivesTheFirstRanksARowMore) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    for (size_t rows : {5, 1, 0}) {
      std::vector<int32_t> in(rows * 2);
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(i) + w.id;
      Request request{"x", Kind::kReducescatter, RM_INT32, RM_SUM, "", in.size(), 2.0, 3.0};
      request.shape = {rows, 2};
      const auto operation = w.Ask(std::move(request), in.data(), nullptr);
      ASSERT_TRUE(Await(operation).ok()) << operation->status().message();
      std::vector<size_t> shares(3, rows / 3);
      for (size_t r = 0; r < rows % 3; ++r) ++shares[r];
      EXPECT_EQ(operation->rows_by_rank, shares);
      std::vector<int32_t> expected;
      size_t begin = 0;
      for (int r = 0; r < w.id; ++r) begin += shares[r];
      for (size_t i = 2 * begin; i < 2 * (begin + shares[w.id]); ++i) {
        expected.push_back((static_cast<int32_t>(i) * 3 + 3) * 6);
      }
      EXPECT_EQ(Gathered(*operation), expected);
    }
  });
}

TEST(EngineTest, AnAlltoallWithSplitsTellsWhatCameFromWhom) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  OnEach(&world, {0, 1, 2}, [](TestWorker& w) {
    for (int pass = 0; pass < 2; ++pass) {
      // Rank r sends r rows to 0, none to 1, and 2 to rank 2.
      const Operation::Splits splits{{static_cast<uint64_t>(w.id), 0, 2},
                                     w.engine->info().workers()};
      std::vector<int32_t> in(2 * (w.id + 2), w.id);
      const auto operation =
          std::make_shared<Operation>(Request{"x", Kind::kAlltoall, RM_INT32, RM_SUM, "", 2, 1, 1},
                                      in.data(), nullptr, static_cast<size_t>(w.id + 2), splits);
      ASSERT_TRUE(w.engine->Submit(operation).ok());
      ASSERT_TRUE(Await(operation).ok()) << operation->status().message();
      const std::vector<std::vector<size_t>> received = {{0, 1, 2}, {0, 0, 0}, {2, 2, 2}};
      EXPECT_EQ(operation->rows_by_rank, received[w.id]);
      const std::vector<std::vector<int32_t>> got = {
          {1, 1, 2, 2, 2, 2}, {}, {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}};
      EXPECT_EQ(Gathered(*operation), got[w.id]);
    }
  });
}

// An error that no other view can mend, such as a missing key.
class NoCommunicators : public CommunicatorFactory {
 public:
  Status Create(const CommunicatorOptions&, std::unique_ptr<Communicator>*) override {
    return {RM_ERR_INVALID, "this job has no key"};
  }
};

TEST(EngineTest, WhyAViewCanNeverBeConnectedReachesTheUser) {
  TestWorld world(2);
  NoCommunicators none;
  TestWorker& w = *world.workers[0];
  w.engine = std::make_unique<Engine>(Engine::Options{&none, &w, &w.state, true});
  WorkerView view;
  view.epoch = world.next_epoch;
  view.reason = "Bootstrap";
  view.peers.resize(2);
  view.workers = {"worker 0", "worker 1"};
  view.self = 0;
  w.engine->PostView(view);
  const Status status = w.engine->AwaitEntered(Engine::Clock::now() + kLong);
  EXPECT_EQ(status.code(), RM_ERR_INVALID);
  EXPECT_THAT(status.message(), HasSubstr("this job has no key"));
}

TEST(EngineTest, AnIdleJobMakesNoCalls) {
  TestWorld world(2);
  const uint64_t epoch = world.Install({0, 1});
  world.Enter({0, 1});
  OnEach(&world, {0, 1}, [](TestWorker& w) {
    std::vector<float> data(4, 1.0f);
    EXPECT_TRUE(w.Allreduce("x", &data).ok());
  });
  std::unique_lock lock(world.mu);
  const int calls = world.most_calls[epoch];
  world.changed.wait_for(lock, std::chrono::milliseconds(50),
                         [&] { return world.most_calls[epoch] != calls; });
  EXPECT_EQ(world.most_calls[epoch], calls);
}

TEST(EngineTest, ShutdownReturnsWhenAllHaveCalledIt) {
  TestWorld world(3);
  world.Install({0, 1, 2});
  world.Enter({0, 1, 2});
  EXPECT_EQ(world.workers[0]
                ->engine->Shutdown(Engine::Clock::now() + std::chrono::milliseconds(20))
                .code(),
            RM_ERR_TIMEOUT);
  OnEach(&world, {1, 2}, [](TestWorker& w) {
    EXPECT_TRUE(w.engine->Shutdown(Engine::Clock::now() + std::chrono::seconds(30)).ok());
  });
  world.Await([&] { return world.workers[0]->finished == 1 && world.workers[2]->finished == 1; });
  std::vector<float> data(1);
  EXPECT_EQ(world.workers[0]->Allreduce("x", &data).code(), RM_ERR_SHUTDOWN);
}

TEST(EngineTest, ThreadsThatCallWhileTheJobIsShutDownHearItAndNobodyHangs) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  std::atomic<int> running{0};
  OnEach(&world, {0, 1}, [&](TestWorker& w) {
    std::vector<std::thread> callers;
    for (int thread = 0; thread < 3; ++thread) {
      callers.emplace_back([&, thread] {
        Status status;
        std::vector<float> data(2000, 0.0f);
        // The threads of the other rank may ask for other tensors, so this one may wait for ever.
        const std::string name = std::to_string(thread == 0 ? 0 : 10 * w.id + thread);
        for (int i = 0; status.ok(); ++i) {
          status = w.Allreduce(name + "." + std::to_string(i % 2), &data);
          if (i == 0 && thread == 0) ++running;
        }
        EXPECT_EQ(status.code(), RM_ERR_SHUTDOWN) << status.message();
      });
    }
    while (running < 2) std::this_thread::yield();
    EXPECT_TRUE(w.engine->Shutdown(Engine::Clock::now() + kLong).ok());
    for (auto& caller : callers) caller.join();
  });
}

TEST(EngineTest, AShutdownThatWasNotAgreedInTimeCanBeWaitedForAgain) {
  TestWorld world(2);
  world.Install({0, 1});
  world.Enter({0, 1});
  Engine& early = *world.workers[0]->engine;
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(early.Shutdown(Engine::Clock::now()).code(), RM_ERR_TIMEOUT);
  OnEach(&world, {0, 1}, [](TestWorker& w) {
    const Status status = w.engine->Shutdown(Engine::Clock::now() + std::chrono::seconds(30));
    EXPECT_TRUE(status.ok()) << status.message();
  });
  EXPECT_TRUE(early.Shutdown(Engine::Clock::now()).ok()) << "all had agreed by then";
}

}  // namespace
}  // namespace ringmaster::engine
