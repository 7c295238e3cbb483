#include "common/membership/view_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/membership/message_json.h"

namespace ringmaster::membership {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// All pods but the last read changes.
ViewPtr First(int pods) {
  std::vector<Candidate> candidates;
  for (int i = 0; i < pods; ++i) {
    const std::string n = std::to_string(i), host = "10.1.0." + n;
    Candidate candidate;
    candidate.pod = {"uid-" + n,     "job-worker-" + n, 1,   "node-" + n, "zone", host + ":9401",
                     host + ":9402", host + ":9403",    true};
    candidate.pod.reads_changes = i + 1 < pods;
    candidate.workers.push_back({.slot = 0, .incarnation = 1, .tcp = host + ":5000", .shm = "s"});
    candidates.push_back(std::move(candidate));
  }
  return std::make_shared<const View>(BootstrapView(std::move(candidates), 1));
}

// Without the pod at `lost`.
ViewPtr Without(const ViewPtr& parent, std::uint32_t lost) {
  View view = *parent;
  ++view.epoch;
  view.parent = parent->epoch;
  view.reason = Reason::kPodLost;
  view.pods.erase(view.pods.begin() + lost);
  std::erase_if(view.ranks, [&](const RankEntry& rank) { return rank.pod == lost; });
  for (RankEntry& rank : view.ranks) rank.pod -= rank.pod > lost ? 1 : 0;
  view.coordinator = view.pods.front().uid;
  return std::make_shared<const View>(std::move(view));
}

Message Propose(const ViewPtr& value) {
  Message message;
  message.kind = MessageKind::kPropose;
  message.from = "uid-0";
  message.view = value->parent;
  message.ballot = {1, "uid-0"};
  message.value = value;
  return message;
}

TEST(ViewChangesTest, IsReadAsTheViewThatWasSentAndTakesFewBytes) {
  const ViewPtr parent = First(1000), next = Without(parent, 500);
  ViewChanges sender, reader;
  sender.Know(parent);
  reader.Know(parent);
  const std::string change = sender.Encode(Propose(next), "uid-7");
  EXPECT_LT(change.size(), 500U);
  const ViewPtr read = reader.Decode(change, "uid-0");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(*read, *next);
}

TEST(ViewChangesTest, WhatComesBackIsTheViewThatWasSent) {
  const ViewPtr parent = First(5), next = Without(parent, 2);
  ViewChanges sender, reader;
  sender.Know(parent);
  reader.Know(parent);
  const ViewPtr read = reader.Decode(sender.Encode(Propose(next), "uid-1"), "uid-0");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(sender.Decode(reader.Encode(Propose(read), "uid-0"), "uid-1"), next);
}

// uid-0 proposes and decides the view without uid-2, uid-1 reads.
class DigestTest : public testing::Test {
 protected:
  DigestTest() {
    sender_.Know(parent_);
    reader_.Know(parent_);
  }
  std::string Proposed() { return sender_.Encode(Propose(next_), "uid-1"); }
  std::string Decided() {
    Message message = Propose(next_);
    message.kind = MessageKind::kDecided;
    return sender_.Encode(message, "uid-1");
  }
  std::string Accepted() {
    Message message = Propose(next_);
    message.kind = MessageKind::kAccepted;
    message.from = "uid-1";
    return reader_.Encode(message, "uid-0");
  }
  static bool IsDigest(const std::string& text) { return text.rfind("digest:", 0) == 0; }

  const ViewPtr parent_ = First(5), next_ = Without(parent_, 2);
  ViewChanges sender_, reader_;
};

TEST_F(DigestTest, TheChangeGoesOnceBetweenTwoMembers) {
  const std::string proposed = Proposed();
  EXPECT_FALSE(IsDigest(proposed));
  ASSERT_NE(reader_.Decode(proposed, "uid-0"), nullptr);
  const std::string accepted = Accepted();
  EXPECT_TRUE(IsDigest(accepted)) << accepted;
  EXPECT_EQ(sender_.Decode(accepted, "uid-1"), next_);
  const std::string decided = Decided();
  EXPECT_TRUE(IsDigest(decided)) << decided;
  const ViewPtr read = reader_.Decode(decided, "uid-0");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(*read, *next_);
}

// Found by the simulator: the second one was taken for the first.
TEST_F(DigestTest, TwoProposalsThatDifferInTheirReasonAloneHaveTwoDigests) {
  View other = *next_;
  other.reason = Reason::kWorkerLost;
  ViewChanges rival;
  rival.Know(parent_);
  const std::string proposed = Proposed();
  ASSERT_NE(reader_.Decode(proposed, "uid-0"), nullptr);
  const ViewPtr read =
      reader_.Decode(rival.Encode(Propose(std::make_shared<const View>(other)), "uid-1"), "uid-3");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->reason, Reason::kWorkerLost);
  Message accepted = Propose(read);
  accepted.kind = MessageKind::kAccepted;
  const std::string theirs = reader_.Encode(accepted, "uid-3");
  EXPECT_TRUE(IsDigest(theirs));
  EXPECT_NE(theirs, Accepted());
}

TEST_F(DigestTest, WhoSendsTheTextAgainIsAnsweredByTheText) {
  const std::string proposed = Proposed();
  ASSERT_NE(reader_.Decode(proposed, "uid-0"), nullptr);
  EXPECT_TRUE(IsDigest(Accepted()));  // which an earlier version can't read
  ASSERT_NE(reader_.Decode(proposed, "uid-0"), nullptr);
  EXPECT_FALSE(IsDigest(Accepted()));
  ASSERT_NE(reader_.Decode(proposed, "uid-0"), nullptr);
  EXPECT_FALSE(IsDigest(Accepted())) << "from then on";
}

TEST_F(DigestTest, AProposalThatMayBeLostIsRepeatedInFull) {
  EXPECT_FALSE(IsDigest(Proposed()));
  EXPECT_FALSE(IsDigest(Proposed()));
}

TEST_F(DigestTest, WhoHasNotGotTheProposalGetsTheTextWhenItAsks) {
  (void)Proposed();  // lost
  EXPECT_EQ(reader_.Decode(Decided(), "uid-0"), nullptr);
  EXPECT_NE(reader_.Decode(Decided(), "uid-0"), nullptr) << "the second time";
}

TEST_F(DigestTest, WhoHasForgottenAChangeGetsTheTextWhenItAsks) {
  ASSERT_NE(reader_.Decode(Proposed(), "uid-0"), nullptr);
  ASSERT_NE(sender_.Decode(Accepted(), "uid-1"), nullptr);
  reader_ = ViewChanges();  // a restart
  reader_.Know(parent_);
  EXPECT_EQ(reader_.Decode(Decided(), "uid-0"), nullptr);
  EXPECT_NE(reader_.Decode(Decided(), "uid-0"), nullptr);
}

TEST(ViewChangesTest, WhoMayNotHaveTheParentOrReadsNoChangesGetsTheWholeView) {
  const ViewPtr parent = First(5), next = Without(parent, 2);
  ViewChanges sender;
  EXPECT_THAT(sender.Encode(Propose(next), "uid-1"), IsEmpty()) << "the sender has no parent";
  sender.Know(parent);
  EXPECT_THAT(sender.Encode(Propose(next), "uid-9"), IsEmpty()) << "new";
  EXPECT_THAT(sender.Encode(Propose(next), "uid-4"), IsEmpty()) << "of an earlier version";
  EXPECT_THAT(sender.Encode(Propose(parent), "uid-1"), IsEmpty()) << "a view without a parent";
}

TEST(ViewChangesTest, AMemberThatIsAViewBehindOrAheadStillReads) {
  const ViewPtr first = First(5), second = Without(first, 3), third = Without(second, 2);
  ViewChanges sender, ahead;
  sender.Know(first);
  ahead.Know(first);
  ahead.Know(second);
  ahead.Know(third);
  EXPECT_NE(ahead.Decode(sender.Encode(Propose(second), "uid-1"), "uid-0"), nullptr);
}

TEST(ViewChangesTest, WithoutTheParentOrWithAnotherOfItsEpochNothingIsRead) {
  const ViewPtr parent = First(5), next = Without(parent, 2);
  ViewChanges sender, other;
  sender.Know(parent);
  const std::string change = sender.Encode(Propose(next), "uid-1");
  EXPECT_EQ(other.Decode(change, "uid-0"), nullptr);
  View forged = *parent;
  forged.ranks[1].incarnation = 2;
  other.Know(std::make_shared<const View>(forged));
  EXPECT_EQ(other.Decode(change, "uid-0"), nullptr);
  EXPECT_EQ(other.Decode("{}", "uid-0"), nullptr);
  EXPECT_EQ(other.Decode("no JSON", "uid-0"), nullptr);
}

TEST(ViewChangesTest, AfterManyRepeatsTheWholeViewIsSent) {
  const ViewPtr parent = First(3), next = Without(parent, 2);
  ViewChanges sender;
  sender.Know(parent);
  int changes = 0;
  while (changes < 1000 && !sender.Encode(Propose(next), "uid-1").empty()) ++changes;
  EXPECT_EQ(changes, 12) << "four times for each member";
}

TEST(ViewChangesTest, InAMessageAChangeTakesThePlaceOfTheView) {
  const ViewPtr parent = First(3), next = Without(parent, 2);
  ViewChanges sender;
  sender.Know(parent);
  const Message sent = Propose(next);
  const std::string text = EncodeMessage(sent, sender.Encode(sent, "uid-1"));
  std::string change;
  auto read = DecodeMessage(text, &change);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->value, nullptr);
  EXPECT_EQ(sender.Decode(change, "uid-1"), next);
  const auto refused = DecodeMessage(text);
  ASSERT_FALSE(refused) << "who reads no changes needs the view itself";
  EXPECT_THAT(refused.error(), HasSubstr("value"));
}

}  // namespace
}  // namespace ringmaster::membership
