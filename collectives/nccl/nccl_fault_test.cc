// Faults of NCCL itself, and what the next view's communicator is made of.
#include <gmock/gmock.h>

#include "collectives/engine/test_requests.h"
#include "collectives/nccl/gpu_test_world.h"

namespace ringmaster::nccl {
namespace {

using engine::Await;
using engine::Kind;
using engine::OnEach;
using engine::Operation;
using engine::Request;
using engine::TestWorker;
using ::testing::HasSubstr;

std::shared_ptr<Operation> AskSum(GpuTestWorld* gpus, TestWorker& w, float* data, int set = 0) {
  Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
  request.process_set = set;
  request.on_gpu = true;
  auto operation = std::make_shared<Operation>(std::move(request), data, data, 0,
                                               Operation::Splits(), Operation::OnDevice{});
  if (Status s = w.engine->Submit(operation); !s.ok()) operation->Complete(s);
  return operation;
}

// Each gives 1.
void SumIs(GpuTestWorld* gpus, const std::vector<int>& ids, float expected) {
  OnEach(&gpus->world, ids, [&](TestWorker& w) {
    auto* data = gpus->OnDevice<float>(w.id, {1});
    const auto operation = AskSum(gpus, w, data);
    const Status status = Await(operation);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(data[0], expected);
  });
}

// Worker 2 of three dies while the others' kernels, of the world or of a set of all three, wait for
// it; then they have a view of two. They are connected.
void DieInAKernel(GpuTestWorld* gpus, int set = 0) {
  for (int id : {0, 1, 2}) {
    gpus->process(id).next_fate = [id] { return id == 2 ? Fate::kAbsent : Fate::kRun; };
  }
  std::vector<float*> data;
  std::vector<std::shared_ptr<Operation>> asked;
  for (int id : {0, 1, 2}) {
    data.push_back(gpus->OnDevice<float>(id, {1}));
    asked.push_back(AskSum(gpus, *gpus->world.workers[id], data.back(), set));
  }
  ASSERT_TRUE(gpus->cluster.AwaitKernels(3));
  gpus->world.workers[2]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
  gpus->world.Stop({0, 1});
  for (int id : {0, 1}) gpus->process(id).next_fate = {};
  gpus->world.Install({0, 1}, "WorkerLost");
  for (int id : {0, 1}) {
    const Status status = Await(asked[id]);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(data[id][0], 2) << "run again from intact inputs, in place";
  }
}

TEST(NcclFaultTest, SurvivorsOfADeathInAKernelRevokeAndShrink) {
  GpuTestWorld gpus(3, {.version = kAllThereIs});
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  SumIs(&gpus, {0, 1, 2}, 3);
  DieInAKernel(&gpus);
  EXPECT_EQ(gpus.cluster.made()["init"], 3);
  EXPECT_EQ(gpus.cluster.made()["shrink"], 2);
}

TEST(NcclFaultTest, WithoutRevokeADeathInAKernelMeansANewCommunicator) {
  for (int version : {kNoShrink, kShrinkOnly}) {
    GpuTestWorld gpus(3, {.version = version});
    gpus.world.Install({0, 1, 2});
    gpus.world.Enter({0, 1, 2});
    SumIs(&gpus, {0, 1, 2}, 3);
    DieInAKernel(&gpus);
    EXPECT_EQ(gpus.cluster.made()["init"], 5);
    EXPECT_FALSE(gpus.cluster.made().contains("shrink"));
  }
}

TEST(NcclFaultTest, WhoLeavesBetweenCollectivesIsShrunkAwayAndTheSameWorkersKeepTheirs) {
  GpuTestWorld gpus(3, {.version = kShrinkOnly});
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  SumIs(&gpus, {0, 1, 2}, 3);
  gpus.world.Stop({0, 1, 2});
  gpus.world.Install({0, 2}, "ScaleDown", true, /*planned=*/true);
  SumIs(&gpus, {0, 2}, 2);
  EXPECT_EQ(gpus.cluster.made()["shrink"], 2);
  EXPECT_EQ(gpus.cluster.made()["shrink with abort"], 0) << "nothing was interrupted";
  gpus.world.Stop({0, 2});
  gpus.world.Install({0, 2}, "Repair");
  SumIs(&gpus, {0, 2}, 2);
  EXPECT_EQ(gpus.cluster.made()["init"] + gpus.cluster.made()["shrink"], 5) << "the same is kept";
}

// Nothing of ours runs then; but what NCCL itself has to do with the dead rank may hang.
TEST(NcclFaultTest, WhoDiesBetweenCollectivesIsShrunkAwayWithWhatHangs) {
  GpuTestWorld gpus(3, {.version = kShrinkOnly});
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  SumIs(&gpus, {0, 1, 2}, 3);
  gpus.world.workers[1]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
  gpus.world.Stop({0, 2});
  const uint64_t epoch = gpus.world.Install({0, 2}, "WorkerLost");
  gpus.world.Await([&] {
    return gpus.world.workers[0]->installed_views.back() == epoch &&
           gpus.world.workers[2]->installed_views.back() == epoch;
  });
  gpus.world.Stop({0, 2});
  gpus.world.Install({0, 2}, "Repair", true, /*planned=*/true);  // before a tensor has come
  SumIs(&gpus, {0, 2}, 2);
  EXPECT_EQ(gpus.cluster.made()["shrink with abort"], 2);
}

TEST(NcclFaultTest, WhatNcclNoticesIsToldAndTheNextViewRunsItAgain) {
  for (Fate fate : {Fate::kError, Fate::kRefused}) {
    GpuTestWorld gpus(2);
    auto* const faulty = &gpus.process(1);
    const auto usual = faulty->next_fate;
    faulty->next_fate = [fate, usual, first = true]() mutable {
      (void)usual();
      return std::exchange(first, false) ? fate : Fate::kRun;
    };
    const uint64_t epoch = gpus.world.Install({0, 1});
    gpus.world.Enter({0, 1});
    std::thread again([&] {
      gpus.world.Await([&] { return gpus.world.workers[1]->broken.contains(epoch); });
      gpus.world.Stop({0, 1});
      gpus.world.Install({0, 1}, "LinkBroken");
    });
    SumIs(&gpus, {0, 1}, 2);
    again.join();
    EXPECT_EQ(gpus.cluster.made()["init"], 4) << "what has failed is not used again";
  }
}

TEST(NcclFaultTest, ACommunicatorThatNeverComesEndsTheWorkerWithTheReason) {
  GpuTestWorld gpus(2, {.limits = {.connect = std::chrono::milliseconds(50)}});
  gpus.process(1).comes_to_connect = [] { return false; };
  gpus.process(0).comes_to_connect = [] { return true; };
  uint64_t epoch = gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  std::vector<std::shared_ptr<Operation>> asked;
  for (int id : {0, 1}) {
    asked.push_back(AskSum(&gpus, *gpus.world.workers[id], gpus.OnDevice<float>(id, {1})));
  }
  for (int view = 0; view < 2; ++view) {
    gpus.world.Await([&] {
      return gpus.world.workers[0]->broken.contains(epoch) &&
             gpus.world.workers[1]->broken.contains(epoch);
    });
    gpus.world.Stop({0, 1});
    epoch = gpus.world.Install({0, 1}, "LinkBroken");
  }
  for (const auto& operation : asked) {
    const Status status = Await(operation);
    EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
    EXPECT_THAT(status.message(),
                HasSubstr("a communicator of 2 ranks was not done after 50 ms, in 3 views"));
  }
}

// The sidecars hear that the view is broken, and give the workers another one.
TEST(NcclFaultTest, ACollectiveThatIsNeverDoneBreaksTheViewAndRunsAgainInTheNext) {
  GpuTestWorld gpus(2, {.limits = {.collective = std::chrono::milliseconds(100)}});
  for (int id : {0, 1}) {
    gpus.process(id).next_fate = [first = true]() mutable {
      return std::exchange(first, false) ? Fate::kAbsent : Fate::kRun;
    };
  }
  const uint64_t epoch = gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  std::thread again([&] {
    gpus.world.Await([&] { return gpus.world.workers[0]->broken.contains(epoch); });
    gpus.world.Stop({0, 1});
    gpus.world.Install({0, 1}, "LinkBroken");
  });
  SumIs(&gpus, {0, 1}, 2);
  again.join();
  EXPECT_EQ(gpus.cluster.made()["init"], 4) << "a communicator in which something hung is not kept";
}

// Worker 0's kernel has given its input and hangs; worker 1 has the result, and can't give it to a
// GPU on which nothing runs any more.
TEST(NcclFaultTest, AKernelThatNoAbortEndsEndsTheWorkerWithTheReason) {
  for (int version : {kNoShrink, kAllThereIs}) {
    GpuTestWorld gpus(2, {.version = version, .limits = {.quiet = std::chrono::milliseconds(100)}});
    gpus.world.Install({0, 1});
    gpus.world.Enter({0, 1});
    SumIs(&gpus, {0, 1}, 2);
    gpus.process(0).next_fate = [] { return Fate::kDeaf; };
    std::vector<std::shared_ptr<Operation>> asked;
    for (int id : {0, 1}) {
      asked.push_back(AskSum(&gpus, *gpus.world.workers[id], gpus.OnDevice<float>(id, {1})));
    }
    EXPECT_TRUE(Await(asked[1]).ok());
    gpus.world.Stop({0, 1});
    gpus.world.Install({0, 1}, "Stalled");
    const Status status = Await(asked[0]);
    EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
    EXPECT_THAT(status.message(), HasSubstr("the GPU did not come to rest after a fault: the GPU's "
                                            "work was not done after 100 ms: a kernel hangs"));
    gpus.cluster.EndDeafKernels();
  }
}

TEST(NcclFaultTest, AnAbortThatNcclRefusesEndsTheWorkerWithTheReason) {
  for (int version : {kNoShrink, kAllThereIs}) {
    GpuTestWorld gpus(3, {.version = version});
    gpus.world.Install({0, 1, 2});
    gpus.world.Enter({0, 1, 2});
    SumIs(&gpus, {0, 1, 2}, 3);
    gpus.process(2).next_fate = [] { return Fate::kAbsent; };
    std::vector<std::shared_ptr<Operation>> asked;
    for (int id : {0, 1, 2}) {
      asked.push_back(AskSum(&gpus, *gpus.world.workers[id], gpus.OnDevice<float>(id, {1})));
    }
    ASSERT_TRUE(gpus.cluster.AwaitKernels(3));
    gpus.world.workers[2]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
    gpus.cluster.AnswerAborts(Result::kInternalError);
    gpus.world.Stop({0, 1});
    gpus.world.Install({0, 1}, "WorkerLost");
    for (int id : {0, 1}) {
      const Status status = Await(asked[id]);
      EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
      EXPECT_THAT(status.message(), HasSubstr("NCCL: giving up a communicator: fake result 3"));
    }
  }
}

// Freeing one communicator waits for the device, where a kernel of the other waits for a dead peer.
TEST(NcclFaultTest, OfSeveralCommunicatorsAllAreMarkedBeforeAnyIsFreed) {
  for (int version : {kNoShrink, kAllThereIs}) {
    GpuTestWorld gpus(3, {.version = version});
    gpus.world.Install({0, 1, 2});
    gpus.world.Enter({0, 1, 2});
    SumIs(&gpus, {0, 1, 2}, 3);
    std::vector<int> set(3);
    OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
      set[w.id] = engine::AddSet(w, {0, 1, 2});
      auto* data = gpus.OnDevice<float>(w.id, {1});
      EXPECT_TRUE(Await(AskSum(&gpus, w, data, set[w.id])).ok());
    });
    DieInAKernel(&gpus, set[0]);
  }
}

}  // namespace
}  // namespace ringmaster::nccl
