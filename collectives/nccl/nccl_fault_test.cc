// Faults of NCCL itself, and how the communicator of the next view is made.
#include <gmock/gmock.h>

#include "collectives/engine/test_requests.h"
#include "collectives/nccl/gpu_test_world.h"
#include "collectives/nccl/sums_on_gpus.h"

namespace ringmaster::nccl {
namespace {

using engine::Await;
using engine::OnEach;
using engine::Operation;
using engine::TestWorker;
using ::testing::HasSubstr;

// Worker 2 of three dies while the kernels of the others, of the world or of a set of all three,
// wait for it. The others then get a view of two. All three are connected before.
void DieInAKernel(GpuTestWorld* gpus, int set = 0) {
  for (int id : {0, 1, 2}) {
    gpus->process(id).next_fate = [id] { return id == 2 ? Fate::kAbsent : Fate::kRun; };
  }
  std::vector<float*> data;
  std::vector<std::shared_ptr<Operation>> asked;
  for (int id : {0, 1, 2}) {
    data.push_back(gpus->OnDevice<float>(id, {1}));
    asked.push_back(AskSum(*gpus->world.workers[id], data.back(), set, gpus->device(id)));
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

// What is done on threads of our own, or on the thread that ends the engine, leaves nothing on
// other workers' GPUs: the world looks at that.
TEST(NcclFaultTest, AWorkerUsesNoGpuButItsOwnWhateverIsGivenUp) {
  for (int version : {kNoShrink, kAllThereIs}) {
    GpuTestWorld gpus(3, {.version = version, .own_devices = true});
    gpus.world.Install({0, 1, 2});
    gpus.world.Enter({0, 1, 2});
    SumIs(&gpus, {0, 1, 2}, 3);
    DieInAKernel(&gpus);
    EXPECT_EQ(gpus.process(1).used_devices(), std::set<int>{1});
  }
}

// The user's thread captures a graph for itself all the time. What CUDA forbids meanwhile to other
// threads that have not said that they don't care would spoil it.
TEST(NcclFaultTest, ACaptureOfTheUsersIsNotSpoiled) {
  GpuTestWorld gpus(2, {.version = kNoShrink});
  std::vector<float*> data;
  for (int id : {0, 1}) data.push_back(gpus.OnDevice<float>(id, {1}));
  for (int id : {0, 1}) gpus.process(id).Capture();
  gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  for (int view = 1; view <= 2; ++view) {
    OnEach(&gpus.world, {0, 1}, [&](TestWorker& w) {
      const Status status = Await(AskSum(w, data[w.id]));
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(*data[w.id], 2 * view);
    });
    gpus.world.Stop({0, 1});
    gpus.world.Install({1, 0}, "Repair");
  }
  gpus.world.Stop({0, 1});
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

// Between collectives nothing of ours runs, but what NCCL itself does with the dead rank may hang.
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

// NCCL stores the child of a shrink when the parent is done. If the parent is aborted before that,
// a child that has failed is stored, and has to be aborted as well.
TEST(NcclFaultTest, AShrinkThatIsNeverDoneLeavesNoCommunicatorBehind) {
  GpuTestWorld gpus(3, {.version = kShrinkOnly, .limits = {.connect = std::chrono::seconds(1)}});
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  SumIs(&gpus, {0, 1, 2}, 3);
  gpus.world.Stop({0, 1, 2});
  gpus.process(1).comes_to_connect = [first = true]() mutable {
    return !std::exchange(first, false);
  };
  const uint64_t epoch = gpus.world.Install({0, 1}, "ScaleDown", true, /*planned=*/true);
  const Repairs repairs(&gpus, {0, 1}, epoch);
  SumIs(&gpus, {0, 1}, 2);
  EXPECT_EQ(gpus.cluster.made()["shrink"], 2);
  for (int id : {0, 1}) EXPECT_EQ(gpus.process(id).communicators(), 1) << "worker " << id;
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
    const Repairs repairs(&gpus, {0, 1}, epoch);
    SumIs(&gpus, {0, 1}, 2);
    EXPECT_EQ(gpus.cluster.made()["init"], 4) << "what has failed is not used again";
  }
}

TEST(NcclFaultTest, AJoinerThatNcclCannotReachMakesTheJobSlowerAndDoesNotEndIt) {
  GpuTestWorld gpus(3, {.limits = {.connect = std::chrono::milliseconds(300)}});
  for (int id : {0, 1, 2}) gpus.process(id).comes_to_connect = [id] { return id != 2; };
  gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  SumIs(&gpus, {0, 1}, 2);
  gpus.world.Stop({0, 1});
  const uint64_t epoch = gpus.world.Install({0, 1, 2}, "ScaleUp", true, /*planned=*/true);
  {
    const Repairs repairs(&gpus, {0, 1, 2}, epoch);
    gpus.world.Enter({0, 1, 2});
    for (int step = 0; step < 2; ++step) SumIs(&gpus, {0, 1, 2}, 3);
  }
  EXPECT_EQ(gpus.cluster.made()["init"], 2 + 2 * 3) << "tried twice with the third";
  gpus.world.Stop({0, 1, 2});
  gpus.world.Install({0, 1}, "WorkerLost");
  SumIs(&gpus, {0, 1}, 2);
  EXPECT_EQ(gpus.cluster.made()["init"], 2 + 2 * 3 + 2) << "tried again without it";
}

TEST(NcclFaultTest, WhereTheJobNeedsNcclACommunicatorThatNeverComesEndsItWithTheReason) {
  GpuTestWorld gpus(2, {.limits = {.connect = std::chrono::milliseconds(50)}, .needs_nccl = true});
  for (int id : {0, 1}) gpus.process(id).comes_to_connect = [id] { return id == 0; };
  const uint64_t epoch = gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  std::vector<std::shared_ptr<Operation>> asked;
  for (int id : {0, 1}) {
    asked.push_back(AskSum(*gpus.world.workers[id], gpus.OnDevice<float>(id, {1})));
  }
  const Repairs repairs(&gpus, {0, 1}, epoch);
  for (const auto& operation : asked) {
    const Status status = Await(operation);
    EXPECT_EQ(status.code(), RM_ERR_INTERNAL);
    EXPECT_THAT(status.message(), HasSubstr("the job's collectives.backend is Nccl: rank "));
    EXPECT_THAT(status.message(), HasSubstr("in 2 views one after the other"));
  }
}

// The sidecars are told that the view is broken, and give the workers another one.
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

TEST(NcclFaultTest, AnErrorThatComesWithTheEndOfAKernelSpoilsItsResult) {
  GpuTestWorld gpus(2);
  gpus.process(1).next_fate = [first = true]() mutable {
    return std::exchange(first, false) ? Fate::kBroken : Fate::kRun;
  };
  const uint64_t epoch = gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  const Repairs repairs(&gpus, {0, 1}, epoch);
  for (int step = 0; step < 2; ++step) SumIs(&gpus, {0, 1}, 2);
  EXPECT_EQ(gpus.cluster.made()["init"], 4) << "what has failed is not used again";
}

TEST(NcclFaultTest, WhatNcclNoticesWhileNothingRunsIsNotKept) {
  for (const std::vector<int>& next : {std::vector<int>{0, 1}, {0, 1, 2}}) {
    GpuTestWorld gpus(3);
    gpus.world.Install({0, 1, 2});
    gpus.world.Enter({0, 1, 2});
    SumIs(&gpus, {0, 1, 2}, 3);
    gpus.process(1).FailCommunicators();
    gpus.world.Stop({0, 1, 2});
    gpus.world.Install(next, "ScaleDown", true, /*planned=*/true);
    SumIs(&gpus, next, static_cast<float>(next.size()));
    EXPECT_EQ(gpus.cluster.made()["init"], 3 + static_cast<int>(next.size()));
    EXPECT_EQ(gpus.cluster.made()["shrink"], 0);
  }
}

TEST(NcclFaultTest, ALaunchThatHangsIsAborted) {
  GpuTestWorld gpus(2, {.limits = {.connect = std::chrono::milliseconds(300)}});
  gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  SumIs(&gpus, {0, 1}, 2);
  gpus.process(1).next_fate = [first = true]() mutable {
    return std::exchange(first, false) ? Fate::kStuck : Fate::kRun;
  };
  const Repairs repairs(&gpus, {0, 1}, gpus.world.next_epoch - 1);
  SumIs(&gpus, {0, 1}, 2);
}

// To revoke may wait for a thread that hangs. Whose time is over first is in trouble; the other may
// hear of the end of the view before its own is.
TEST(NcclFaultTest, WhatIsInTroubleIsAbortedAndNotRevoked) {
  GpuTestWorld gpus(2, {.limits = {.collective = std::chrono::milliseconds(100),
                                   .quiet = std::chrono::milliseconds(500)}});
  gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  SumIs(&gpus, {0, 1}, 2);
  for (int id : {0, 1}) {
    gpus.process(id).HangRevokes();
    gpus.process(id).next_fate = [first = true]() mutable {
      return std::exchange(first, false) ? Fate::kAbsent : Fate::kRun;
    };
  }
  const Repairs repairs(&gpus, {0, 1}, gpus.world.next_epoch - 1);
  SumIs(&gpus, {0, 1}, 2);
  EXPECT_LT(gpus.process(0).hung_revokes() + gpus.process(1).hung_revokes(), 2);
}

TEST(NcclFaultTest, ARevokeThatHangsIsGivenUpForAnAbort) {
  GpuTestWorld gpus(3, {.limits = {.quiet = std::chrono::milliseconds(500)}});
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  SumIs(&gpus, {0, 1, 2}, 3);
  for (int id : {0, 1}) gpus.process(id).HangRevokes();
  DieInAKernel(&gpus);
  EXPECT_EQ(gpus.cluster.made()["init"], 5);
}

// The kernel of worker 0 has given its input and hangs. Worker 1 has the result, but can't give it
// to a GPU on which nothing runs any more.
TEST(NcclFaultTest, AKernelThatNoAbortEndsEndsTheWorkerWithTheReason) {
  for (int version : {kNoShrink, kAllThereIs}) {
    GpuTestWorld gpus(2, {.version = version, .limits = {.quiet = std::chrono::milliseconds(100)}});
    gpus.world.Install({0, 1});
    gpus.world.Enter({0, 1});
    SumIs(&gpus, {0, 1}, 2);
    gpus.process(0).next_fate = [] { return Fate::kDeaf; };
    std::vector<std::shared_ptr<Operation>> asked;
    for (int id : {0, 1}) {
      asked.push_back(AskSum(*gpus.world.workers[id], gpus.OnDevice<float>(id, {1})));
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
      asked.push_back(AskSum(*gpus.world.workers[id], gpus.OnDevice<float>(id, {1})));
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
      EXPECT_TRUE(Await(AskSum(w, data, set[w.id])).ok());
    });
    DieInAKernel(&gpus, set[0]);
  }
}

}  // namespace
}  // namespace ringmaster::nccl
