#include "common/membership/outbox.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

TEST(OutboxTest, AMessageIsSignedAndAboutTheCurrentView) {
  Floor f(2, 1);
  const Message message = f.outbox.MakeMessage(MessageKind::kFetch);
  EXPECT_EQ(message.from, "p1");
  EXPECT_EQ(message.incarnation, 1u);
  EXPECT_EQ(message.view, MakeEpoch(1, 1));
  EXPECT_EQ(f.outbox.MakeViewMessage().value, f.view);
}

TEST(OutboxTest, MembersGetAMessageAndThisPodDoesNot) {
  Floor f(3, 1);
  f.outbox.SendToMembers(f.outbox.MakeMessage(MessageKind::kRan));
  EXPECT_EQ(f.Take(), (Strings{"ran p0", "ran p2"}));
}

TEST(OutboxTest, TheAddressesOfAFormerViewStayKnown) {
  Floor f(3);
  f.outbox.SetView(TestSuccessor(*f.view));
  f.outbox.SendTo("p2", f.outbox.MakeMessage(MessageKind::kRan));
  f.outbox.RememberAddress("p2", "elsewhere:1");
  f.outbox.SendTo("p2", f.outbox.MakeMessage(MessageKind::kRan));
  EXPECT_EQ(std::get<Send>(f.actions.at(0)).address, "p2:1");
  EXPECT_EQ(std::get<Send>(f.actions.at(1)).address, "elsewhere:1");
}

TEST(OutboxTest, APodThatAsksOftenIsAnsweredOncePerPause) {
  Floor f(2);
  EXPECT_TRUE(f.outbox.SendLimited("p1", f.outbox.MakeViewMessage()));
  EXPECT_FALSE(f.outbox.SendLimited("p1", f.outbox.MakeViewMessage()));
  f.Pass(f.retry);
  EXPECT_TRUE(f.outbox.SendLimited("p1", f.outbox.MakeViewMessage()));
  EXPECT_EQ(f.Take().size(), 2u);
}

}  // namespace
}  // namespace ringmaster::membership
