#include "collectives/engine/cpu_backend.h"

#include <gtest/gtest.h>

#include <vector>

#include "collectives/engine/fake_communicator.h"

namespace ringmaster::engine {
namespace {

class CpuBackendTest : public ::testing::Test {
 protected:
  CpuBackendTest() : host_(1, 3) { backend_.Install(&host_, {"a", "b", "c"}); }

  std::shared_ptr<Operation> Add(Request request, const void* in, void* out, size_t rows = 0) {
    response_.requests.push_back(request);
    response_.batches = {static_cast<uint32_t>(response_.requests.size())};
    response_.roots = {-1};
    auto operation = std::make_shared<Operation>(std::move(request), in, out, rows);
    pending_.Add(operation);
    return operation;
  }

  FakeCommunicator host_;
  CpuBackend backend_;
  PendingTable pending_;
  Response response_;
  Retained result_;
};

TEST_F(CpuBackendTest, FusedAllreducesAreOneCallAndComeOutInTheirPlaces) {
  std::vector<float> a{1, 2}, b{10}, a_out(2), b_out(1);
  Add({"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 2, 1.0, 2.0}, a.data(), a_out.data());
  Add({"b", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 0.5, 1.0}, b.data(), b_out.data());
  ASSERT_TRUE(backend_.Execute(response_, pending_, &result_).ok());
  EXPECT_EQ(host_.calls, std::vector<std::string>{"allreduce"});
  EXPECT_EQ(a_out[0], 0) << "nothing is given out before it is published";
  EXPECT_TRUE(backend_.Publish(result_, &pending_));
  EXPECT_EQ(a_out, (std::vector<float>{6, 12}));
  EXPECT_EQ(b_out, std::vector<float>{15});
  EXPECT_EQ(a, (std::vector<float>{1, 2}));
  EXPECT_TRUE(pending_.empty());
}

Request OfPieces(const std::string& name, uint64_t count, const std::string& shapes) {
  Request request{name, Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", count, 0.5, 2.0};
  request.pieces = shapes;
  return request;
}

TEST_F(CpuBackendTest, APreparedGroupIsOneCallWithWhatElseIsReadyAndComesOutInItsPlaces) {
  std::vector<float> a{1, 2}, b{10}, b_out(1), c{100}, c_out(1);
  Request request = OfPieces("group", 3, "[2][1]");
  const auto pieces =
      std::make_shared<Pieces>(Pieces{{a.data(), a.data(), 2}, {b.data(), b_out.data(), 1}});
  const auto operation = std::make_shared<Operation>(request, pieces, Operation::OnDevice());
  pending_.Add(operation);
  response_.requests = {request};
  Add({"c", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 1, 1.0, 1.0}, c.data(), c_out.data());
  ASSERT_TRUE(backend_.Execute(response_, pending_, &result_).ok());
  EXPECT_EQ(host_.calls, std::vector<std::string>{"allreduce"});
  EXPECT_EQ(a, (std::vector<float>{1, 2})) << "nothing is given out before it is published";
  EXPECT_TRUE(backend_.Publish(result_, &pending_));
  EXPECT_EQ(a, (std::vector<float>{3, 6}));
  EXPECT_EQ(b, std::vector<float>{10});
  EXPECT_EQ(b_out, std::vector<float>{30});
  EXPECT_EQ(c_out, std::vector<float>{300});
  EXPECT_TRUE(operation->done());
}

TEST_F(CpuBackendTest, AFailedCallLeavesWhatIsPendingAsItIs) {
  std::vector<float> data{1, 2};
  const auto operation =
      Add({"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 2, 1, 1}, data.data(), data.data());
  host_.fail_at = 0;
  EXPECT_EQ(backend_.Execute(response_, pending_, &result_).code(), RM_ERR_EPOCH_MOVED);
  EXPECT_EQ(data, (std::vector<float>{1, 2}));
  EXPECT_EQ(pending_.Find("a"), operation);
  EXPECT_FALSE(operation->done());
}

class DirectTest : public CpuBackendTest {
 protected:
  DirectTest() : direct_({.bytes = 8, .segment = 8}) { direct_.Install(&host_, {"a", "b", "c"}); }
  CpuBackend direct_;
};

TEST_F(DirectTest, ALargeTensorIsReducedWhereItLiesPieceByPiece) {
  std::vector<float> data{1, 2, 3};
  Add({"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 0.5, 2.0}, data.data(), data.data());
  ASSERT_TRUE(direct_.Execute(response_, pending_, &result_).ok());
  EXPECT_TRUE(result_.response.needs_confirmation()) << "all have to confirm it";
  EXPECT_EQ(host_.calls, (std::vector<std::string>{"allreduce", "allreduce"}));
  EXPECT_EQ(data, (std::vector<float>{1.5, 3, 4.5})) << "the raw result";
  EXPECT_TRUE(direct_.Publish(result_, &pending_));
  EXPECT_EQ(data, (std::vector<float>{3, 6, 9}));
}

TEST_F(DirectTest, TheTensorsOfAPreparedGroupLieApartSoTheyArePackedHoweverLargeTheyAre) {
  EXPECT_FALSE(direct_.RunsAlone(OfPieces("group", 100, "[50][50]")));
}

TEST_F(DirectTest, SoIsOneOfAProcessSetOverAChannelOfItsOwn) {
  std::vector<float> data{1, 2, 3};
  Request request{"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1, 1};
  request.process_set = 4;
  Add(request, data.data(), data.data());
  response_.ranks = {0, 1};
  EXPECT_FALSE(direct_.RunsAlone(request)) << "the set has no channel yet";
  ASSERT_TRUE(direct_.Execute(response_, pending_, &result_).ok());
  EXPECT_TRUE(direct_.RunsAlone(request));
  EXPECT_TRUE(result_.response.needs_confirmation());
  EXPECT_EQ(data, (std::vector<float>{2, 4, 6}));
  EXPECT_TRUE(direct_.Publish(result_, &pending_));
  direct_.ForgetSet(4);
  EXPECT_FALSE(direct_.RunsAlone(request));
}

TEST_F(DirectTest, AFailureInAnyPieceLeavesTheInputAsItWas) {
  const std::vector<float> before{1, 2, 3};
  std::vector<float> data = before;
  Add({"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 0.5, 1.0}, data.data(), data.data());
  for (int call : {0, 1}) {
    host_.calls.clear();
    host_.fail_at = call;
    EXPECT_EQ(direct_.Execute(response_, pending_, &result_).code(), RM_ERR_EPOCH_MOVED);
    EXPECT_EQ(data, before) << "call " << call;
  }
}

TEST_F(DirectTest, WhatIsWithdrawnMayRunOnceMoreOrBePublished) {
  const std::vector<float> before{1, 2, 3};
  std::vector<float> data = before;
  Add({"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1.0, 1.0}, data.data(), data.data());
  ASSERT_TRUE(direct_.Execute(response_, pending_, &result_).ok());
  direct_.Withdraw(&result_, pending_);
  EXPECT_EQ(data, before);
  EXPECT_TRUE(direct_.Publish(result_, &pending_));
  EXPECT_EQ(data, (std::vector<float>{3, 6, 9}));
}

TEST_F(DirectTest, AnInputBesideTheResultIsNeverTouchedNorCopied) {
  const std::vector<float> in{1, 2, 3};
  std::vector<float> out(3);
  Add({"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 2.0, 1.0}, in.data(), out.data());
  ASSERT_TRUE(direct_.Execute(response_, pending_, &result_).ok());
  EXPECT_EQ(result_.parts[0].input, nullptr);
  EXPECT_EQ(result_.parts[0].data, nullptr);
  EXPECT_EQ(in, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(out, (std::vector<float>{6, 12, 18}));
}

TEST_F(DirectTest, RangesThatOverlapPartlyGoThroughABuffer) {
  std::vector<float> data{1, 2, 3, 0};
  Add({"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 3, 1.0, 1.0}, data.data(), data.data() + 1);
  ASSERT_TRUE(direct_.Execute(response_, pending_, &result_).ok());
  EXPECT_EQ(data, (std::vector<float>{1, 2, 3, 0}));
  EXPECT_TRUE(direct_.Publish(result_, &pending_));
  EXPECT_EQ(data, (std::vector<float>{1, 3, 6, 9}));
}

TEST_F(CpuBackendTest, AnAgreedErrorIsPublishedAndNothingRuns) {
  const auto operation =
      Add({"a", Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 2, 1, 1}, nullptr, nullptr);
  response_.error = RM_ERR_MISMATCH;
  ASSERT_TRUE(backend_.Execute(response_, pending_, &result_).ok());
  EXPECT_TRUE(host_.calls.empty());
  backend_.Publish(result_, &pending_);
  EXPECT_EQ(operation->status().code(), RM_ERR_MISMATCH);
}

TEST_F(CpuBackendTest, ARankThatLacksAResultReceivesItAndTheHolderGivesItsOwn) {
  Retained lacking;
  lacking.parts.resize(1);
  lacking.parts[0].bytes = 4;
  host_.from_root = [](void* data, size_t bytes) { std::memset(data, 7, bytes); };
  ASSERT_TRUE(backend_.HandOver(0, nullptr, &lacking).ok());
  EXPECT_EQ(lacking.parts[0].data->data()[3], std::byte{7});

  Retained held = lacking, kept = lacking;
  kept.parts[0].data = Buffer::Make(4);
  ASSERT_TRUE(backend_.HandOver(1, &kept, &held).ok());
  EXPECT_EQ(held.parts[0].data, kept.parts[0].data);

  Retained empty;  // like that of a barrier: there is nothing to send
  empty.parts.resize(1);
  ASSERT_TRUE(backend_.HandOver(0, nullptr, &empty).ok());
  EXPECT_EQ(host_.calls.size(), 2u);
}

}  // namespace
}  // namespace ringmaster::engine
