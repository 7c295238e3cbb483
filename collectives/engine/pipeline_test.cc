#include "collectives/engine/pipeline.h"

#include <gtest/gtest.h>

#include <vector>

#include "collectives/engine/cpu_backend.h"
#include "collectives/engine/fake_communicator.h"

namespace ringmaster::engine {
namespace {

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() : host_(0, 2), pipeline_(std::make_unique<CpuBackend>(), 1 << 20, &pending_) {
    pipeline_.Install(&host_, {"a", "b"});
  }

  std::shared_ptr<Operation> Ask(const std::string& name, Kind kind = Kind::kAllreduce) {
    Request request{name,         kind, RM_FLOAT32, RM_SUM, kind == Kind::kBroadcast ? "a" : "",
                    data_.size(), 1.0,  1.0};
    auto operation = std::make_shared<Operation>(std::move(request), data_.data(), data_.data());
    pending_.Add(operation);
    return operation;
  }

  std::vector<float> data_ = {1, 2};
  FakeCommunicator host_;
  PendingTable pending_;
  Pipeline pipeline_;
};

TEST_F(PipelineTest, AnOperationIsAgreedOnExecutedAndGivenOut) {
  const auto operation = Ask("a");
  RoundResult round;
  ASSERT_TRUE(pipeline_.Agree(false, {}, &round).ok());
  ASSERT_EQ(round.responses.size(), 1u);
  const Retained* result = nullptr;
  ASSERT_TRUE(pipeline_.Execute(round.responses[0], &result).ok());
  EXPECT_EQ(result->response.number, 0u);
  EXPECT_EQ(pipeline_.next_number(), 1u);
  EXPECT_FALSE(operation->done());
  pipeline_.Publish(*result);
  EXPECT_TRUE(operation->done());
  EXPECT_EQ(data_, (std::vector<float>{2, 4}));
  EXPECT_TRUE(pending_.empty());
}

TEST_F(PipelineTest, TheVoteOfARoundProvesThatAllHaveTheResultsBeforeIt) {
  Ask("b", Kind::kBroadcast);
  RoundResult round;
  ASSERT_TRUE(pipeline_.Agree(false, {}, &round).ok());
  const Retained* result = nullptr;
  ASSERT_TRUE(pipeline_.Execute(round.responses[0], &result).ok());
  pipeline_.Publish(*result);
  EXPECT_EQ(pipeline_.Holdings().size(), 1u);
  Ask("c");
  ASSERT_TRUE(pipeline_.Agree(false, {}, &round).ok());
  EXPECT_TRUE(pipeline_.Holdings().empty());
}

TEST_F(PipelineTest, WhatFailsStaysPendingAndTakesNoNumber) {
  const auto operation = Ask("a");
  RoundResult round;
  ASSERT_TRUE(pipeline_.Agree(false, {}, &round).ok());
  host_.fail_at = static_cast<int>(host_.calls.size());
  const Retained* result = nullptr;
  EXPECT_EQ(pipeline_.Execute(round.responses[0], &result).code(), RM_ERR_EPOCH_MOVED);
  EXPECT_EQ(pipeline_.next_number(), 0u);
  EXPECT_NE(pending_.Find("a"), nullptr);
  EXPECT_FALSE(operation->done());
}

TEST_F(PipelineTest, LargeTensorsThatAreReadyTogetherEachRunWhereTheyLieIfTheRanksShareMemory) {
  for (const bool shares : {true, false}) {
    FakeCommunicator host(0, 2);
    if (!shares) host.path = "tcp";
    PendingTable pending;
    Pipeline pipeline(std::make_unique<CpuBackend>(DirectSizes{.bytes = 8}), 1 << 20, &pending);
    pipeline.Install(&host, {"a", "b"});
    std::vector<float> large = {1, 2}, larger = {1, 2, 3}, small = {1}, smaller = {2};
    for (auto* data : {&small, &large, &larger, &smaller}) {
      Request request{"x" + std::to_string(pending.Requests().size()),
                      Kind::kAllreduce,
                      RM_FLOAT32,
                      RM_SUM,
                      "",
                      data->size(),
                      1,
                      1};
      pending.Add(std::make_shared<Operation>(request, data->data(), data->data()));
    }
    RoundResult round;
    ASSERT_TRUE(pipeline.Agree(false, {}, &round).ok());
    ASSERT_EQ(round.responses.size(), shares ? 3u : 1u);
    for (const Response& response : round.responses) {
      const Retained* result = nullptr;
      ASSERT_TRUE(pipeline.Execute(response, &result).ok());
      EXPECT_EQ(result->response.direct, shares && response.requests[0].bytes() >= 8);
      pipeline.Publish(*result);
    }
    EXPECT_EQ(larger, (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(smaller, (std::vector<float>{4}));
  }
}

// In the view after a fault the number of the prepared operation goes to another operation, and the
// next fault may come before this rank has executed that one.
TEST_F(PipelineTest, WhatWasPreparedInAnEarlierViewIsNotTakenForWhatHasItsNumberLater) {
  Pipeline pipeline(std::make_unique<CpuBackend>(DirectSizes{.bytes = 1}), 1 << 20, &pending_);
  pipeline.Install(&host_, {"a", "b"});
  Request request{"x", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", data_.size(), 1.0, 1.0};
  const auto operation = std::make_shared<Operation>(request, data_.data(), data_.data());
  pending_.Add(operation);
  RoundResult round;
  ASSERT_TRUE(pipeline.Agree(false, {}, &round).ok());
  host_.fail_at = static_cast<int>(host_.calls.size()) + 1;  // the barrier after the allreduce
  const Retained* result = nullptr;
  EXPECT_EQ(pipeline.Execute(round.responses[0], &result).code(), RM_ERR_EPOCH_MOVED);
  EXPECT_EQ(host_.calls.back(), "barrier");
  EXPECT_EQ(data_, (std::vector<float>{1, 2}));
  host_.fail_at = static_cast<int>(host_.calls.size());
  EXPECT_FALSE(pipeline.Agree(false, {}, &round).ok());
  Response other = Response::Of({request});
  other.number = 0;
  other.direct = true;
  EXPECT_EQ(pipeline.HandOver({{other, {}, true}, 1}, true, &result).code(), RM_ERR_INTERNAL);
  EXPECT_FALSE(operation->done());
}

TEST_F(PipelineTest, OnlyARankThatLacksAHandedOverResultKeepsIt) {
  RecoveryPlan::Handover handover;
  handover.holder = 1;
  handover.result.parts.resize(1);
  handover.result.parts[0].bytes = 8;
  handover.result.response.number = 0;
  handover.result.response.requests.resize(1);
  handover.result.response.batches = {1};
  const Retained* lacked = nullptr;
  ASSERT_TRUE(pipeline_.HandOver(handover, /*lacks=*/false, &lacked).ok());
  EXPECT_EQ(lacked, nullptr);
  EXPECT_EQ(pipeline_.next_number(), 0u);
  ASSERT_TRUE(pipeline_.HandOver(handover, /*lacks=*/true, &lacked).ok());
  ASSERT_NE(lacked, nullptr);
  EXPECT_EQ(pipeline_.next_number(), 1u);
  ASSERT_TRUE(pipeline_.HandOver(handover, /*lacks=*/true, &lacked).ok());
  EXPECT_EQ(lacked, nullptr) << "it has that one now";
}

}  // namespace
}  // namespace ringmaster::engine
