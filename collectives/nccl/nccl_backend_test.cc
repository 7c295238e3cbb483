// Every collective with tensors on fake GPUs, in engines that agree over real communicators.
#include "collectives/nccl/nccl_backend.h"

#include <gmock/gmock.h>

#include "collectives/engine/cpu_backend.h"
#include "collectives/engine/fake_communicator.h"
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
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<Operation> Ask(TestWorker& w, Request request, const void* in, void* out,
                               size_t rows = 0, Operation::Splits splits = {},
                               const void* ready = nullptr) {
  request.on_gpu = true;
  auto operation =
      std::make_shared<Operation>(std::move(request), in, out, rows, std::move(splits),
                                  Operation::OnDevice{.device = 0, .ready_event = ready});
  if (Status s = w.engine->Submit(operation); !s.ok()) operation->Complete(s);
  return operation;
}

void ExpectOk(const std::shared_ptr<Operation>& operation) {
  const Status status = Await(operation);
  EXPECT_TRUE(status.ok()) << status.message();
}

template <typename T>
std::vector<T> Read(const T* data, size_t count) {
  return {data, data + count};
}

template <typename T>
std::vector<T> Gathered(const Operation& operation, size_t count) {
  if (operation.gathered == nullptr) return {};
  return Read(reinterpret_cast<const T*>(operation.gathered->data()), count);
}

// With NCCL on all ranks, and without it on one: the results are the same.
class Collectives : public testing::TestWithParam<bool> {
 protected:
  Collectives() : gpus(3, {.without_nccl = GetParam() ? std::set<int>{} : std::set<int>{1}}) {
    gpus.world.Install({0, 1, 2});
    gpus.world.Enter({0, 1, 2});
  }
  ~Collectives() override {
    EXPECT_EQ(gpus.cluster.made().contains("init"), GetParam()) << "NCCL is used where all have it";
  }

  // Reduces the values that each rank gives, expects the same result on all ranks, and returns it.
  template <typename T>
  std::vector<T> Reduced(rm_dtype dtype, rm_op op, const std::vector<std::vector<T>>& by_rank,
                         double prescale = 1, double postscale = 1) {
    std::vector<std::vector<T>> results(3);
    OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
      const size_t count = by_rank[w.id].size();
      const T* in = gpus.OnDevice(w.id, by_rank[w.id]);
      T* out = gpus.OnDevice(w.id, std::vector<T>(count));
      Request request{"x", Kind::kAllreduce, dtype, op, "", count, prescale, postscale};
      ExpectOk(Ask(w, request, in, out));
      EXPECT_EQ(Read(in, count), by_rank[w.id]) << "the input is left intact";
      results[w.id] = Read(out, count);
    });
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
    return results[0];
  }

  GpuTestWorld gpus;
};

TEST_P(Collectives, ReductionsMeanWhatTheyMeanOnTheHost) {
  const std::vector<std::vector<float>> floats = {{1, -2}, {3, 5}, {8, 6}};
  EXPECT_THAT(Reduced(RM_FLOAT32, RM_SUM, floats), ElementsAre(12, 9));
  EXPECT_THAT(Reduced(RM_FLOAT32, RM_AVERAGE, floats), ElementsAre(4, 3));
  EXPECT_THAT(Reduced(RM_FLOAT32, RM_MIN, floats), ElementsAre(1, -2));
  EXPECT_THAT(Reduced(RM_FLOAT32, RM_MAX, floats), ElementsAre(8, 6));
  EXPECT_THAT(Reduced(RM_FLOAT32, RM_PRODUCT, floats), ElementsAre(24, -60));
}

TEST_P(Collectives, FactorsApplyBeforeAndAfter) {
  const std::vector<std::vector<float>> floats = {{1, -2}, {3, 5}, {8, 6}};
  EXPECT_THAT(Reduced(RM_FLOAT32, RM_SUM, floats, 0.5, 4), ElementsAre(24, 18));
  EXPECT_THAT(Reduced(RM_FLOAT32, RM_AVERAGE, floats, 0.5, 1), ElementsAre(2, 1.5));
  EXPECT_THAT(Reduced(RM_FLOAT32, RM_MAX, floats, 1, 2), ElementsAre(16, 12));
  const std::vector<std::vector<int32_t>> ints = {{2}, {4}, {-3}};
  EXPECT_THAT(Reduced(RM_INT32, RM_SUM, ints, 1, 3), ElementsAre(9));
}

// Narrowed to the tensors' type these factors are 0 or infinite, the results on the host aren't.
TEST_P(Collectives, FactorsThatAHalfCannotHoldDoTheirWork) {
  constexpr uint16_t kLarge = 0x7B00, kSmall = 0x1400;  // 57344 and 2^-10 as fp16
  for (const auto& [factor, value] : {std::pair(1e-9, kLarge), std::pair(1e6, kSmall)}) {
    const Request request{"on host", Kind::kAllreduce, RM_FLOAT16, RM_SUM, "", 1, factor, 1};
    std::vector<uint16_t> on_host(3, value);
    OnEach(&gpus.world, {0, 1, 2},
           [&](TestWorker& w) { ExpectOk(w.Ask(request, &on_host[w.id], &on_host[w.id])); });
    EXPECT_THAT(on_host, Each(testing::AllOf(testing::Gt(0), testing::Lt(0x7C00)))) << "finite";
    const std::vector<std::vector<uint16_t>> values(3, {value});
    EXPECT_EQ(Reduced<uint16_t>(RM_FLOAT16, RM_SUM, values, factor), std::vector{on_host[0]});
  }
}

// NCCL multiplies by a third of the tensors' type, the host divides.
TEST_P(Collectives, AveragesOfHalvesAreTheHostsButForTheirLastBits) {
  constexpr uint16_t kSeven = 0x4700, kLess = 0x46FF;  // as fp16
  const std::vector<std::vector<uint16_t>> sevens(3, {kSeven});
  EXPECT_THAT(Reduced<uint16_t>(RM_FLOAT16, RM_AVERAGE, sevens),
              ElementsAre(GetParam() ? kLess : kSeven));
}

TEST_P(Collectives, TypesThatNcclLacksWorkToo) {
  EXPECT_THAT(Reduced<int16_t>(RM_INT16, RM_SUM, {{1, -7}, {2, 3}, {3, 1}}), ElementsAre(6, -3));
  EXPECT_THAT(Reduced<uint8_t>(RM_BOOL, RM_SUM, {{0, 1}, {0, 1}, {0, 0}}), ElementsAre(0, 1));
  EXPECT_THAT(Reduced<uint8_t>(RM_BOOL, RM_PRODUCT, {{1, 1}, {1, 0}, {1, 1}}), ElementsAre(1, 0));
  EXPECT_THAT(Reduced<int32_t>(RM_INT32, RM_AVERAGE, {{-1}, {-1}, {-2}}), ElementsAre(-2))
      << "integers are rounded down";
  const std::vector<float> same = {1, 2, 3};
  EXPECT_THAT(Reduced<float>(RM_FLOAT32, RM_ADASUM, {same, same, same}), ElementsAre(1, 2, 3))
      << "equal vectors are averaged";
}

// Tensors of this size are reduced where the caller has them if they lie in the host's memory.
TEST_P(Collectives, LargeTensorsOfTypesThatNcclLacksComeBackToo) {
  const std::vector<int16_t> large(engine::DirectSizes().bytes, 2);
  EXPECT_EQ(Reduced<int16_t>(RM_INT16, RM_SUM, {large, large, large}),
            std::vector<int16_t>(large.size(), 6));
}

std::shared_ptr<Operation> AskPrepared(TestWorker& w, rm_dtype dtype, uint64_t count,
                                       const std::string& shapes, const engine::Pieces& pieces) {
  Request request{"group", Kind::kAllreduce, dtype, RM_SUM, "", count, 0.5, 4};
  if (dtype == RM_INT16) request.prescale = request.postscale = 1;
  request.on_gpu = true;
  request.pieces = shapes;
  auto operation =
      std::make_shared<Operation>(std::move(request), std::make_shared<engine::Pieces>(pieces),
                                  Operation::OnDevice{.device = 0, .ready_event = nullptr});
  if (Status s = w.engine->Submit(operation); !s.ok()) operation->Complete(s);
  return operation;
}

TEST_P(Collectives, APreparedGroupComesBackInItsPlacesAlsoOfATypeThatNcclLacks) {
  OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
    for (int pass = 0; pass < 3; ++pass) {
      float* a = gpus.OnDevice(w.id, std::vector<float>(3, 1.0f));
      float* b = gpus.OnDevice(w.id, std::vector<float>(5, 2.0f));
      float* b_out = gpus.OnDevice(w.id, std::vector<float>(5));
      ExpectOk(AskPrepared(w, RM_FLOAT32, 8, "[3][0][5]", {{a, a, 3}, {}, {b, b_out, 5}}));
      EXPECT_THAT(Read(a, 3), Each(6.0f));
      EXPECT_THAT(Read(b, 5), Each(2.0f));
      EXPECT_THAT(Read(b_out, 5), Each(12.0f));
      int16_t* c = gpus.OnDevice(w.id, std::vector<int16_t>(2, 1));
      int16_t* d = gpus.OnDevice(w.id, std::vector<int16_t>(4, 5));
      ExpectOk(AskPrepared(w, RM_INT16, 6, "[2][4]", {{c, c, 2}, {d, d, 4}}));
      EXPECT_THAT(Read(c, 2), Each(3));
      EXPECT_THAT(Read(d, 4), Each(15));
    }
  });
}

TEST_P(Collectives, ARankThatHasJoinedAddsNothingToAPreparedGroup) {
  OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
    if (w.id > 0) {
      float* a = gpus.OnDevice(w.id, std::vector<float>(3, 1.0f));
      float* b = gpus.OnDevice(w.id, std::vector<float>(5, 2.0f));
      ExpectOk(AskPrepared(w, RM_FLOAT32, 8, "[3][5]", {{a, a, 3}, {b, b, 5}}));
      EXPECT_THAT(Read(a, 3), Each(4.0f));
      EXPECT_THAT(Read(b, 5), Each(8.0f));
    }
    engine::Join(w);
  });
}

TEST_P(Collectives, ManyTensorsAreFusedAndComeBackInTheirPlaces) {
  OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
    std::vector<std::shared_ptr<Operation>> asked;
    std::vector<float*> data;
    for (size_t i = 0; i < 8; ++i) {
      data.push_back(gpus.OnDevice(w.id, std::vector<float>(i, static_cast<float>(i + w.id))));
      asked.push_back(
          Ask(w, {"t" + std::to_string(i), Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", i, 1, 1},
              data.back(), data.back()));
    }
    for (const auto& operation : asked) ExpectOk(operation);
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_THAT(Read(data[i], i), Each(3.0f * static_cast<float>(i) + 3));
    }
  });
  EXPECT_EQ(gpus.cluster.unaligned_results(), 0);
}

// NCCL lacks their type, or some rank lacks NCCL: their results come from the host.
TEST_P(Collectives, ManyTensorsWithFactorsOfTypesThatNcclLacksComeBackInTheirPlaces) {
  OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
    std::vector<std::shared_ptr<Operation>> asked;
    std::vector<int16_t*> data;
    for (size_t i = 0; i < 8; ++i) {
      data.push_back(gpus.OnDevice(w.id, std::vector<int16_t>(i, static_cast<int16_t>(i))));
      asked.push_back(Ask(
          w, {"t" + std::to_string(i), Kind::kAllreduce, RM_INT16, RM_SUM, "", i, 1, i % 2 + 1.0},
          data.back(), data.back()));
    }
    for (const auto& operation : asked) ExpectOk(operation);
    for (size_t i = 0; i < 8; ++i) EXPECT_THAT(Read(data[i], i), Each(3 * i * (i % 2 + 1)));
  });
}

TEST_P(Collectives, RowsAreGatheredScatteredAndExchanged) {
  OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
    const size_t own = static_cast<size_t>(w.id);
    const auto* rows = gpus.OnDevice(w.id, std::vector<int32_t>(2 * own, w.id));
    const auto gather =
        Ask(w, {"gather", Kind::kAllgather, RM_INT32, RM_SUM, "", 2, 1, 1}, rows, nullptr, own);
    ExpectOk(gather);
    EXPECT_THAT(Gathered<int32_t>(*gather, 6), ElementsAre(1, 1, 2, 2, 2, 2));
    EXPECT_THAT(gather->rows_by_rank, ElementsAre(0, 1, 2));

    const auto* all = gpus.OnDevice<float>(w.id, {1, 2, 3, 4});
    Request request{"scatter", Kind::kReducescatter, RM_FLOAT32, RM_SUM, "", 4, 1, 1};
    const auto scatter = Ask(w, request, all, nullptr);
    ExpectOk(scatter);
    const std::vector<std::vector<float>> shares = {{3, 6}, {9}, {12}};
    EXPECT_EQ(Gathered<float>(*scatter, shares[own].size()), shares[own]);

    std::vector<int32_t> to_each;  // k + 1 rows to rank k
    Operation::Splits splits{{1, 2, 3}, w.engine->info().workers()};
    for (int to = 0; to < 3; ++to) to_each.insert(to_each.end(), to + 1, 10 * w.id + to);
    const auto exchange = Ask(w, {"exchange", Kind::kAlltoall, RM_INT32, RM_SUM, "", 1, 1, 1},
                              gpus.OnDevice(w.id, to_each), nullptr, 6, splits);
    ExpectOk(exchange);
    std::vector<int32_t> expected;
    for (int from = 0; from < 3; ++from) {
      expected.insert(expected.end(), own + 1, 10 * from + w.id);
    }
    EXPECT_EQ(Gathered<int32_t>(*exchange, expected.size()), expected);

    auto* sent = gpus.OnDevice(w.id, std::vector<int16_t>(3, static_cast<int16_t>(w.id)));
    ExpectOk(Ask(
        w, {"broadcast", Kind::kBroadcast, RM_INT16, RM_SUM, w.engine->info().WorkerAt(2), 3, 1, 1},
        sent, sent));
    EXPECT_THAT(Read(sent, 3), Each(2));
  });
}

TEST_P(Collectives, WhoHasJoinedGivesNothing) {
  OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
    if (w.id > 0) {
      auto* data = gpus.OnDevice<float>(w.id, {1, 2});
      ExpectOk(Ask(w, {"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 2, 1, 1}, data, data));
      EXPECT_THAT(Read(data, 2), ElementsAre(2, 4));
    }
    (void)engine::Join(w);
  });
}

INSTANTIATE_TEST_SUITE_P(Nccl, Collectives, testing::Values(true, false), [](const auto& info) {
  return info.param ? "OnAllRanks" : "MissingOnOne";
});

TEST(NcclBackendTest, AProcessSetHasACommunicatorOfItsOwn) {
  GpuTestWorld gpus(3);
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
    const int set = engine::AddSet(w, {0, 2});
    for (int i = 0; i < 2; ++i) {
      if (w.id == 1) continue;
      auto* data = gpus.OnDevice<float>(w.id, {static_cast<float>(w.id + 1)});
      Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
      request.process_set = set;
      ExpectOk(Ask(w, request, data, data));
      EXPECT_EQ(data[0], 4);
    }
    EXPECT_TRUE(engine::RemoveSet(w, set).ok());
  });
  EXPECT_EQ(gpus.cluster.made()["init"], 2);
}

// NCCL has no sums of 16-bit integers, so the set's ranks take them through the host's memory.
TEST(NcclBackendTest, ASetThatWentThroughTheHostLeavesOtherSetsTheirChannels) {
  GpuTestWorld gpus(3);
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
    const int first = engine::AddSet(w, {0, 1}), second = engine::AddSet(w, {1, 2});
    if (w.id != 2) {
      auto* data = gpus.OnDevice<int16_t>(w.id, {1});
      Request request{"gpu", Kind::kAllreduce, RM_INT16, RM_SUM, "", 1, 1, 1};
      request.process_set = first;
      ExpectOk(Ask(w, request, data, data));
    }
    if (w.id == 0) return;
    std::vector<float> host(3, static_cast<float>(w.id));
    ExpectOk(engine::AskIn(w, second, "host", &host));
    EXPECT_THAT(host, Each(3.0f));
  });
}

TEST(NcclBackendTest, ARankWithoutAGpuIsNoneOfAnOperationsBusinessInWhichItHasNoPart) {
  GpuTestWorld gpus(3, {.without_cuda = {2}});
  gpus.world.Install({0, 1, 2});
  gpus.world.Enter({0, 1, 2});
  OnEach(&gpus.world, {0, 1, 2}, [&](TestWorker& w) {
    const int set = engine::AddSet(w, {0, 1});
    if (w.id != 2) {
      auto* data = gpus.OnDevice<float>(w.id, {1});
      Request request{"gpu", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
      request.process_set = set;
      ExpectOk(Ask(w, request, data, data));
      EXPECT_EQ(data[0], 2);
    }
    std::vector<float> host(3, 1.0f);
    EXPECT_TRUE(w.Allreduce("all", &host).ok());
    EXPECT_THAT(host, Each(3.0f));
  });
}

// Of a GPU's kernels some end later than others, although all have what they need.
TEST(NcclBackendTest, ASetThatIsRemovedAsksForNothingThatAPeerStillNeeds) {
  GpuTestWorld gpus(2, {.limits = {.collective = std::chrono::seconds(5)}});
  std::atomic<bool> slow{false};
  gpus.process(1).may_end_kernels = [&] { return !slow; };
  gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  std::vector<float*> data = {gpus.OnDevice<float>(0, {1}), gpus.OnDevice<float>(1, {1})};
  std::vector<int> set(2);
  const auto ask_sum = [&](TestWorker& w) {
    Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
    request.process_set = set[w.id];
    return Ask(w, request, data[w.id], data[w.id]);
  };
  OnEach(&gpus.world, {0, 1}, [&](TestWorker& w) {
    set[w.id] = engine::AddSet(w, {0, 1});
    ExpectOk(ask_sum(w));
  });
  slow = true;
  gpus.world.StopNothing({0, 1});  // the round before has ended
  gpus.world.HoldRounds();
  std::vector<std::vector<float>> on_host(2, {1});
  std::vector<std::shared_ptr<Operation>> asked;
  for (auto& w : gpus.world.workers) {
    asked.push_back(engine::AskIn(*w, 0, "held", &on_host[w->id]));
  }
  // The other one may be in a round already, which doesn't end without this one.
  gpus.world.Await([&] { return gpus.world.held >= 1; });
  for (auto& w : gpus.world.workers) {
    asked.push_back(ask_sum(*w));
    Request remove{engine::kRemoveSetName, Kind::kRemoveSet};
    remove.removed_set = set[w->id];
    asked.push_back(w->Ask(std::move(remove), nullptr, nullptr));
  }
  gpus.world.ReleaseRounds();  // both are agreed on in the next round
  ExpectOk(asked[2]);
  const auto is_gone = [&]() -> std::optional<Status> {
    return gpus.process(0).communicators() == 0 ? std::optional(Status()) : std::nullopt;
  };
  EXPECT_EQ(Patience(std::chrono::milliseconds(200), {}).Await("an abort", is_gone).code(),
            RM_ERR_TIMEOUT)
      << "the other rank's kernel runs";
  slow = false;
  gpus.process(1).Notify();
  for (const auto& operation : asked) ExpectOk(operation);
  for (int id : {0, 1}) EXPECT_EQ(*data[id], 4) << "worker " << id;
  for (int id : {0, 1}) EXPECT_EQ(gpus.process(id).communicators(), 0) << "worker " << id;
  EXPECT_EQ(gpus.cluster.withdrawn(), 0);
}

TEST(NcclBackendTest, TheInputIsReadWhenItsEventHasCome) {
  GpuTestWorld gpus(2);
  gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  OnEach(&gpus.world, {0, 1}, [&](TestWorker& w) {
    FakeProcess& process = gpus.process(w.id);
    const auto cuda = process.gpu().cuda;
    auto* data = gpus.OnDevice<float>(w.id, {0});
    void *stream = nullptr, *ready = nullptr;
    ASSERT_EQ(cuda->StreamCreate(&stream), kCudaSuccess);
    ASSERT_EQ(cuda->EventCreate(&ready), kCudaSuccess);
    std::atomic<bool> go{false};
    process.Enqueue(stream, [&] {
      if (go) data[0] = 5;
      return go.load();
    });
    ASSERT_EQ(cuda->EventRecord(ready, stream), kCudaSuccess);
    const auto operation =
        Ask(w, {"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1}, data, data, 0, {}, ready);
    go = true;
    process.Notify();
    ExpectOk(operation);
    EXPECT_EQ(data[0], 10);
    ASSERT_EQ(cuda->StreamDestroy(stream), kCudaSuccess);
    ASSERT_EQ(cuda->EventDestroy(ready), kCudaSuccess);
  });
}

TEST(NcclBackendTest, TensorsInDifferentMemoriesAreTheSameErrorOnEveryRank) {
  GpuTestWorld gpus(2);
  gpus.world.Install({0, 1});
  gpus.world.Enter({0, 1});
  OnEach(&gpus.world, {0, 1}, [&](TestWorker& w) {
    std::vector<float> on_host = {1};
    auto* data = gpus.OnDevice<float>(w.id, {1});
    const Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
    const auto wrong =
        w.id == 0 ? Ask(w, request, data, data) : w.Ask(request, on_host.data(), on_host.data());
    const Status status = Await(wrong);
    EXPECT_EQ(status.code(), RM_ERR_MISMATCH);
    EXPECT_THAT(status.message(),
                HasSubstr("memory is a GPU's on rank 0 and the host's on rank 1"));
    ExpectOk(Ask(w, request, data, data));  // the job goes on, with either memory
    EXPECT_TRUE(w.Allreduce("y", &on_host).ok());
  });
}

// Two results are given out. One is copied to its output, which takes a while. For the other one,
// which came through the host's memory, the device has no memory.
TEST(NcclBackendTest, CopiesBeforeAFailureOfTheirPublicationHaveEndedWhenItsOperationsComplete) {
  FakeCluster cluster;
  {
    FakeProcess process(&cluster);
    std::atomic<bool> go{true};
    process.may_copy = [&] { return go.load(); };
    const Gpu gpu = process.gpu();
    engine::FakeCommunicator host(0, 1);
    engine::CpuBackend on_host;
    on_host.Install(&host, {"a"});
    NcclBackend backend(gpu, &on_host, 0, {});
    backend.Install(&host, {"a"});
    ASSERT_EQ(gpu.cuda->SetDevice(0), kCudaSuccess);
    void *in = nullptr, *out = nullptr, *rows = nullptr;
    for (void** data : {&in, &out, &rows}) ASSERT_EQ(gpu.cuda->Malloc(data, 64), kCudaSuccess);
    auto* const result_at = static_cast<float*>(out);
    *static_cast<float*>(in) = 7;
    *result_at = -1;

    Request reduce{"reduce", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
    Request scatter{"scatter", Kind::kReducescatter, RM_INT16, RM_SUM, "", 8, 1, 1};
    reduce.on_gpu = scatter.on_gpu = true;
    const auto reduced =
        std::make_shared<Operation>(reduce, in, out, 0, Operation::Splits(), Operation::OnDevice{});
    const auto scattered = std::make_shared<Operation>(scatter, rows, nullptr, 0,
                                                       Operation::Splits(), Operation::OnDevice{});
    engine::PendingTable pending;
    pending.Add(reduced);
    pending.Add(scattered);
    engine::Response response;
    response.requests = {reduce, scatter};
    response.batches = {1, 1};
    response.roots = {0, 0};
    engine::Retained result;
    const Status ran = backend.Execute(response, pending, &result);
    ASSERT_TRUE(ran.ok()) << ran.message();

    // The copy goes on as soon as somebody waits for the event behind it.
    go = false;
    const auto proceed = [&] {
      go = true;
      process.Notify();
    };
    process.on_not_ready = proceed;
    process.RunOutOfMemory();
    EXPECT_TRUE(backend.Publish(result, &pending));
    EXPECT_EQ(*result_at, 7) << "a copy was still under way";
    for (const auto& operation : {reduced, scattered}) {
      ASSERT_TRUE(operation->done());
      EXPECT_EQ(operation->status().code(), RM_ERR_OUT_OF_MEMORY) << "the first failure";
    }
    proceed();
    on_host.Uninstall();
  }
  EXPECT_TRUE(cluster.misuse().empty()) << testing::PrintToString(cluster.misuse());
}

// A worker that has joined guesses its GPU. The communicator of that one is no good for tensors on
// another one.
TEST(NcclBackendTest, WhoseGpuWasOnlyAGuessGetsACommunicatorOnTheRightOneInTheNextView) {
  FakeCluster cluster;
  {
    FakeProcess process(&cluster, kAllThereIs, 2);
    const Gpu gpu = process.gpu();
    engine::FakeCommunicator host(0, 1);
    engine::CpuBackend on_host;
    on_host.Install(&host, {"a"});
    NcclBackend backend(gpu, &on_host, 0, {});
    Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
    request.on_gpu = true;
    const auto run = [&](int device) {
      void* data = nullptr;
      EXPECT_EQ(gpu.cuda->SetDevice(device), kCudaSuccess);
      EXPECT_EQ(gpu.cuda->Malloc(&data, 4), kCudaSuccess);
      engine::PendingTable pending;
      pending.Add(std::make_shared<Operation>(request, data, data, 0, Operation::Splits(),
                                              Operation::OnDevice{.device = device}));
      engine::Response response = engine::Response::Of({request});
      response.roots = {-1};
      engine::Retained result;
      return backend.Execute(response, pending, &result);
    };
    backend.Install(&host, {"a"});
    EXPECT_TRUE(run(0).ok());
    const Status moved = run(1);
    EXPECT_EQ(moved.code(), RM_ERR_EPOCH_MOVED) << moved.message();
    EXPECT_THAT(moved.message(), HasSubstr("was made on GPU 0"));
    backend.Uninstall();
    backend.Install(&host, {"a"});
    EXPECT_TRUE(run(1).ok());
    EXPECT_EQ(cluster.made()["init"], 2);
    backend.Uninstall();
    on_host.Uninstall();
    EXPECT_EQ(gpu.cuda->SetDevice(0), kCudaSuccess);
  }
  EXPECT_TRUE(cluster.misuse().empty()) << testing::PrintToString(cluster.misuse());
}

const Gpu& NoGpu() {
  static const Gpu none = [] {
    Gpu gpu;
    gpu.no_cuda = "CUDA finds no GPU";
    return gpu;
  }();
  return none;
}

// An input that the host's backend has reduced in place is restored if the result doesn't count.
TEST(BackendByMemoryTest, AnInputOfTheHostsMemoryThatWasReducedInPlaceComesBack) {
  engine::FakeCommunicator host(0, 2);
  BackendByMemory backend(NoGpu, 0, {});
  backend.Install(&host, {"a", "b"});
  const std::vector<float> before(engine::DirectSizes().bytes, 1);
  std::vector<float> data = before;
  const Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", data.size(), 1, 1};
  engine::PendingTable pending;
  pending.Add(std::make_shared<Operation>(request, data.data(), data.data()));
  engine::Response response = engine::Response::Of({request});
  response.roots = {-1};
  engine::Retained result;
  ASSERT_TRUE(backend.Execute(response, pending, &result).ok());
  EXPECT_TRUE(result.response.direct);
  EXPECT_NE(data, before);
  backend.Withdraw(&result, pending);
  EXPECT_EQ(data, before);
}

TEST(NcclBackendTest, WithoutAGpuTheReasonIsTold) {
  BackendByMemory backend(NoGpu, 0, {});
  Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1, 1};
  request.on_gpu = true;
  engine::Retained result;
  const Status status =
      backend.Execute(engine::Response::Of({request}), engine::PendingTable(), &result);
  EXPECT_EQ(status.code(), RM_ERR_UNAVAILABLE);
  EXPECT_THAT(status.message(), HasSubstr("CUDA finds no GPU"));
}

}  // namespace
}  // namespace ringmaster::nccl
