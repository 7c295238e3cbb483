#include "collectives/mpi/mpi_backend.h"

#include <gmock/gmock.h>

#include <map>
#include <mutex>

#include "collectives/engine/engine.h"
#include "collectives/engine/test_requests.h"
#include "collectives/engine/test_world.h"
#include "collectives/mpi/fake_mpi.h"

namespace ringmaster::mpi {
namespace {

using engine::AddSet;
using engine::Await;
using engine::Kind;
using engine::Request;
using engine::TestWorker;
using engine::TestWorld;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Not;

// Workers of an engine whose backend is MpiBackend.
class MpiBackendTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  MpiBackendTest() : job_(kRanks) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      worlds_.push_back(std::make_unique<MpiWorld>(job_.At(rank), MpiLimits()));
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([this, rank] {
        EXPECT_TRUE(worlds_[rank]->Begin(rank, kRanks).ok());
        EXPECT_TRUE(worlds_[rank]->Connect(MpiWorld::Clock::now() + engine::kLong).ok());
      });
    }
    for (auto& thread : threads) thread.join();
    world_ = std::make_unique<TestWorld>(
        kRanks, true, engine::StallLimits{}, [this](TestWorker* worker) {
          return std::make_unique<MpiBackend>(worlds_[static_cast<size_t>(worker->id)].get());
        });
    world_->Install({0, 1, 2});
    world_->Enter({0, 1, 2});
  }
  ~MpiBackendTest() override { world_.reset(); }

  FakeMpiJob job_;
  std::vector<std::unique_ptr<MpiWorld>> worlds_;
  std::unique_ptr<TestWorld> world_;
};

TEST_F(MpiBackendTest, WhatTheEngineAgreesOnGoesByMpi) {
  OnEach(world_.get(), {0, 1, 2}, [](TestWorker& w) {
    std::vector<float> large(1 << 18, static_cast<float>(w.id + 1));
    EXPECT_TRUE(w.Allreduce("large", &large).ok());
    EXPECT_THAT(std::span(large).first(3), Each(6.0f));
    std::vector<int32_t> rows(200 * (static_cast<size_t>(w.id) + 1), w.id);
    const auto gathered =
        w.Ask({"g", Kind::kAllgather, RM_INT32, RM_SUM, "", 1}, rows.data(), nullptr, rows.size());
    ASSERT_TRUE(Await(gathered).ok()) << gathered->status().message();
    EXPECT_EQ(gathered->rows_by_rank, (std::vector<size_t>{200, 400, 600}));
    std::vector<int32_t> in(6, w.id);
    Request scatter{"scatter", Kind::kReducescatter, RM_INT32, RM_SUM, "", 6, 1, 1};
    scatter.shape = {3, 2};
    const auto scattered = w.Ask(scatter, in.data(), nullptr);
    ASSERT_TRUE(Await(scattered).ok()) << scattered->status().message();
    EXPECT_EQ(engine::Gathered(*scattered)[0], 3);
  });
  const auto calls = job_.calls(1);
  EXPECT_THAT(calls, Contains("allreduce"));
  EXPECT_THAT(calls, Contains("allgatherv"));
  EXPECT_THAT(calls, Contains("reduce_scatter"));
  EXPECT_THAT(calls, Contains("barrier")) << "which confirms the reducescatter";
}

TEST_F(MpiBackendTest, AProcessSetHasItsOwnCommunicatorUntilItIsRemoved) {
  OnEach(world_.get(), {0, 1, 2}, [](TestWorker& w) {
    const int set = AddSet(w, {0, 2});
    std::vector<float> data(1000, static_cast<float>(w.id + 1));
    if (w.id != 1) {
      EXPECT_TRUE(Await(engine::AskIn(w, set, "x", &data)).ok());
      EXPECT_THAT(data, Each(4.0f));
    }
    EXPECT_TRUE(engine::RemoveSet(w, set).ok());
  });
  EXPECT_THAT(job_.calls(0), Contains("group"));
  EXPECT_THAT(job_.calls(1), Not(Contains("group")));
  EXPECT_EQ(job_.freed(), 2);
}

TEST_F(MpiBackendTest, AdasumRunsOnTheHostsCommunicator) {
  OnEach(world_.get(), {0, 1, 2}, [](TestWorker& w) {
    std::vector<float> data(1000, 1.0f);
    EXPECT_TRUE(w.Allreduce("a", &data, RM_ADASUM).ok());
    EXPECT_THAT(data, Each(::testing::FloatNear(1.0f, 1e-6f))) << "alike vectors count once";
  });
  EXPECT_THAT(job_.calls(0), testing::ElementsAre("dup"));
}

TEST_F(MpiBackendTest, ATransferRunsOnTheHostsCommunicator) {
  OnEach(world_.get(), {0, 1, 2}, [](TestWorker& w) {
    AddSet(w, {0, 1});  // from now on idle ranks come to rounds soon
    if (w.id == 1) return;
    std::vector<float> data(100, w.id == 0 ? 5.0f : 0.0f);
    const auto operation = engine::AskTransfer(w, 0, 2, "t", &data);
    ASSERT_TRUE(Await(operation).ok()) << operation->status().message();
    EXPECT_THAT(data, Each(5.0f));
  });
  EXPECT_THAT(job_.calls(0), testing::ElementsAre("dup"));
}

TEST_F(MpiBackendTest, AWorkerThatDiesInAnOperationEndsItForTheOthers) {
  job_.Hold();
  std::vector<std::vector<float>> data(kRanks, std::vector<float>(1000, 1.0f));
  std::vector<std::shared_ptr<engine::Operation>> asked;
  for (auto& worker : world_->workers) {
    std::vector<float>& mine = data[static_cast<size_t>(worker->id)];
    asked.push_back(worker->Ask({"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1000, 1, 1},
                                mine.data(), mine.data()));
  }
  job_.AwaitBegun(kRanks + kRanks);  // all are in the operation
  world_->workers[2]->engine->PostEnd({RM_ERR_SHUTDOWN, "it dies"});
  // Nobody brings another view; FixedWorldReports ends such workers.
  world_->Await([&] {
    return world_->workers[0]->broken.size() == 1 && world_->workers[1]->broken.size() == 1;
  });
  for (int id : {0, 1}) {
    EXPECT_TRUE(worlds_[static_cast<size_t>(id)]->stuck());
    EXPECT_FALSE(asked[static_cast<size_t>(id)]->done()) << "it ends with the worker";
    EXPECT_THAT(data[static_cast<size_t>(id)], Each(1.0f));
  }
}

}  // namespace
}  // namespace ringmaster::mpi
