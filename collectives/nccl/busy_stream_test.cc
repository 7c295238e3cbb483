// Users' streams that are busy for longer than anything of ours may take.
#include <gmock/gmock.h>

#include <array>
#include <atomic>

#include "collectives/engine/cpu_backend.h"
#include "collectives/engine/fake_communicator.h"
#include "collectives/nccl/gpu_test_world.h"
#include "collectives/nccl/sums_on_gpus.h"

namespace ringmaster::nccl {
namespace {

using engine::Await;
using engine::Kind;
using engine::Operation;
using engine::Request;
using std::chrono::milliseconds;

// What our own work may take to end. The users' work takes longer.
constexpr milliseconds kQuiet{100};

// A stream of the user's on which something runs until Go(), and the event behind it.
class BusyStream {
 public:
  explicit BusyStream(FakeProcess* process) : process_(process) {
    const auto cuda = process->gpu().cuda;
    (void)cuda->SetDevice(0);
    EXPECT_EQ(cuda->StreamCreate(&stream_), kCudaSuccess);
    EXPECT_EQ(cuda->EventCreate(&ready_), kCudaSuccess);
    process->Enqueue(stream_, [go = go_] { return go->load(); });
    EXPECT_EQ(cuda->EventRecord(ready_, stream_), kCudaSuccess);
  }
  void* ready() const { return ready_; }
  void Go() {
    *go_ = true;
    process_->Notify();
  }

 private:
  FakeProcess* const process_;
  void *stream_ = nullptr, *ready_ = nullptr;
  const std::shared_ptr<std::atomic<bool>> go_ = std::make_shared<std::atomic<bool>>(false);
};

class BusyStreams : public testing::TestWithParam<int> {
 protected:
  BusyStreams() {
    for (int id : {0, 1, 2}) gpus.process(id).on_not_ready = [this, id] { ++looks[id]; };
  }

  // All three ask for a sum whose input has not come, and wait for it. Then worker 2 dies. The
  // input comes when the others have waited for it in their new view for longer than kQuiet.
  void DieWhileTheUsersCompute(int set = 0) {
    std::vector<BusyStream> busy;
    std::vector<float*> data;
    std::vector<std::shared_ptr<Operation>> asked;
    for (int id : {0, 1, 2}) {
      looks[id] = 0;
      busy.emplace_back(&gpus.process(id));
      data.push_back(gpus.OnDevice<float>(id, {1}));
      asked.push_back(AskSum(*gpus.world.workers[id], data[id], set, 0, busy[id].ready()));
    }
    for (int id : {0, 1, 2}) {
      while (looks[id] == 0) std::this_thread::yield();
    }
    gpus.world.workers[2]->engine->PostEnd({RM_ERR_INTERNAL, "killed"});
    gpus.world.Stop({0, 1});
    gpus.world.Install({0, 1}, "WorkerLost");
    const Patience longer(2 * kQuiet, {});
    EXPECT_EQ(longer.Await("the users' work", [] { return std::optional<Status>(); }).code(),
              RM_ERR_TIMEOUT);
    gpus.world.Stop({0, 1});  // is answered, whatever they wait for
    gpus.world.Install({0, 1}, "Repair");
    for (BusyStream& stream : busy) stream.Go();
    for (int id : {0, 1}) {
      const Status status = Await(asked[id]);
      EXPECT_TRUE(status.ok()) << "worker " << id << ": " << status.message();
      EXPECT_EQ(*data[id], 2) << "worker " << id;
    }
  }

  std::array<std::atomic<int>, 3> looks = {};  // by id: how often an event had not come
  GpuTestWorld gpus{3, {.version = GetParam(), .limits = {.quiet = kQuiet}}};
};

TEST_P(BusyStreams, OutlastADeathAndTheGpuIsNotTakenForBroken) {
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  SumIs(&gpus, {0, 1, 2}, 3);
  DieWhileTheUsersCompute();
}

// To free the set's communicator, and in some versions the world's, waits for the users' work.
TEST_P(BusyStreams, OutlastTheEndOfCommunicatorsWhoseMemoryWaitsForThem) {
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  SumIs(&gpus, {0, 1, 2}, 3);
  std::vector<int> set(3);
  engine::OnEach(&gpus.world, {0, 1, 2}, [&](engine::TestWorker& w) {
    set[w.id] = engine::AddSet(w, {0, 1, 2});
    EXPECT_TRUE(Await(AskSum(w, gpus.OnDevice<float>(w.id, {1}), set[w.id])).ok());
  });
  DieWhileTheUsersCompute(set[0]);
}

INSTANTIATE_TEST_SUITE_P(Nccl, BusyStreams, testing::Values(kNoShrink, kShrinkOnly, kAllThereIs),
                         [](const auto& info) {
                           return info.param == kNoShrink     ? "WithoutShrink"
                                  : info.param == kShrinkOnly ? "WithShrink"
                                                              : "WithRevoke";
                         });

// The result lies in the host's memory, as HandOver() leaves it.
TEST(BusyStreamTest, AHandedOverResultIsCopiedWhenTheCallersStreamHasComeToIt) {
  FakeCluster cluster;
  {
    FakeProcess process(&cluster);
    const Gpu gpu = process.gpu();
    engine::FakeCommunicator host(0, 1);
    engine::CpuBackend on_host;
    on_host.Install(&host, {"a"});
    NcclBackend backend(gpu, &on_host, 0, {.quiet = kQuiet});
    backend.Install(&host, {"a"});
    ASSERT_EQ(gpu.cuda->SetDevice(0), kCudaSuccess);
    void* out = nullptr;
    ASSERT_EQ(gpu.cuda->Malloc(&out, 64), kCudaSuccess);
    BusyStream busy(&process);
    Request reduce{"reduce", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
    reduce.on_gpu = true;
    const auto operation =
        std::make_shared<Operation>(reduce, out, out, 0, Operation::Splits(),
                                    Operation::OnDevice{.device = 0, .ready_event = busy.ready()});
    engine::PendingTable pending;
    pending.Add(operation);
    engine::Retained handed;
    handed.response.requests = {reduce};
    handed.response.batches = {1};
    handed.response.roots = {0};
    handed.parts.push_back({engine::Buffer::Make(4), 4});
    *reinterpret_cast<float*>(handed.parts[0].data->data()) = 7;
    // The stream goes on when the event has been looked at for longer than kQuiet, and not if the
    // wait is inside of a copy.
    const auto begin = Patience::Clock::now();
    process.on_not_ready = [&] {
      if (Patience::Clock::now() - begin > 2 * kQuiet) busy.Go();
    };
    EXPECT_TRUE(backend.Publish(handed, &pending));
    ASSERT_TRUE(operation->done());
    EXPECT_TRUE(operation->status().ok()) << operation->status().message();
    EXPECT_EQ(*static_cast<float*>(out), 7);
    busy.Go();
    backend.Uninstall();
    on_host.Uninstall();
  }
  EXPECT_TRUE(cluster.misuse().empty()) << testing::PrintToString(cluster.misuse());
}

}  // namespace
}  // namespace ringmaster::nccl
