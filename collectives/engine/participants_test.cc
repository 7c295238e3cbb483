#include "collectives/engine/participants.h"

#include <gtest/gtest.h>

#include "collectives/engine/fake_communicator.h"

namespace ringmaster::engine {
namespace {

Response OfSet(int32_t set, std::vector<int> ranks) {
  Request request;
  request.process_set = set;
  Response response = Response::Of({request});
  response.ranks = std::move(ranks);
  return response;
}

class ParticipantsTest : public ::testing::Test {
 protected:
  ParticipantsTest() { participants_.Install(&host_, {"a", "b", "c"}); }
  const Participants::Ranks* Choose(const Response& response) {
    const Participants::Ranks* ranks = nullptr;
    EXPECT_TRUE(participants_.Choose(response, &ranks).ok());
    return ranks;
  }

  FakeCommunicator host_{1, 3};
  Participants participants_;
};

TEST_F(ParticipantsTest, InWhatIsOfTheWorldAllTakePart) {
  const auto* ranks = Choose(OfSet(0, {}));
  EXPECT_EQ(ranks, &participants_.world());
  EXPECT_EQ(ranks->host, &host_);
  EXPECT_EQ(ranks->workers.size(), 3u);
}

TEST_F(ParticipantsTest, InWhatIsOfASetItsMembersDoOverACommunicatorOfTheirOwn) {
  const auto* ranks = Choose(OfSet(4, {1, 2}));
  ASSERT_NE(ranks, nullptr);
  EXPECT_EQ(ranks->host->size(), 2);
  EXPECT_EQ(ranks->host->rank(), 0);
  EXPECT_EQ(ranks->workers, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(Choose(OfSet(4, {1, 2})), ranks) << "it is kept for the view";
}

TEST_F(ParticipantsTest, SetsWithACommonRankHaveChannelsOfTheirOwnAlsoThoseOfOthers) {
  Response transfer = OfSet(4, {1, 2});
  transfer.requests.front().kind = Kind::kTransfer;
  Choose(transfer);
  Choose(OfSet(4, {0, 2}));  // this rank is not in it
  Choose(OfSet(5, {1, 2}));
  EXPECT_EQ(host_.channels, (std::vector<int>{0, 2}));
  participants_.Uninstall();
  participants_.Install(&host_, {"a", "b", "c"});
  Choose(OfSet(5, {1, 2}));
  EXPECT_EQ(host_.channels.back(), 1) << "a new view begins anew";
}

TEST_F(ParticipantsTest, OfASetThatThisRankIsNotInItIsNone) {
  EXPECT_EQ(Choose(OfSet(4, {0, 2})), nullptr);
}

TEST_F(ParticipantsTest, ASetThatCouldNotBeConnectedIsTriedAgain) {
  class Unwilling : public FakeCommunicator {
   public:
    using FakeCommunicator::FakeCommunicator;
    Status Subset(std::span<const int> ranks, int channel,
                  std::unique_ptr<Communicator>* out) override {
      if (std::exchange(willing_, true)) return FakeCommunicator::Subset(ranks, channel, out);
      return {RM_ERR_EPOCH_MOVED, "not now"};
    }

   private:
    bool willing_ = false;
  };
  Unwilling host(1, 3);
  participants_.Install(&host, {"a", "b", "c"});
  const Participants::Ranks* ranks = nullptr;
  EXPECT_EQ(participants_.Choose(OfSet(4, {1, 2}), &ranks).code(), RM_ERR_EPOCH_MOVED);
  EXPECT_EQ(ranks, nullptr);
  ASSERT_NE(Choose(OfSet(4, {1, 2}))->host, nullptr);
  EXPECT_EQ(Choose(OfSet(4, {1, 2}))->host->size(), 2);
}

TEST_F(ParticipantsTest, ARemovedSetIsConnectedAnewAndSoIsEachInANewView) {
  EXPECT_EQ(Choose(OfSet(4, {1, 2}))->host->size(), 2);
  participants_.ForgetSet(4);
  EXPECT_EQ(Choose(OfSet(4, {0, 1, 2}))->host->size(), 3);
  participants_.Uninstall();
  EXPECT_EQ(participants_.world().host, nullptr);
  participants_.Install(&host_, {"a", "b", "c"});
  EXPECT_EQ(Choose(OfSet(4, {0, 1}))->host->size(), 2);
}

}  // namespace
}  // namespace ringmaster::engine
