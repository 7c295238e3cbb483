#include "common/membership/record_copy.h"

#include "common/membership/test_parts.h"

namespace ringmaster::membership {
namespace {

TEST(RecordCopyTest, TheViewIsSentMoreAndMoreSlowlyUntilTheRecordHasIt) {
  Floor f(2);
  RecordCopy copy(f.retry, &f.outbox);
  const Epoch epoch = f.view->epoch;
  copy.Check(true, epoch);
  copy.Check(true, epoch);
  EXPECT_EQ(f.Take(), (Strings{"decided record"}));
  f.Pass(f.retry);
  copy.Check(true, epoch);
  EXPECT_EQ(f.Take(), (Strings{"decided record"}));
  f.Pass(f.retry);
  copy.Check(true, epoch);
  EXPECT_EQ(f.Take(), Strings{}) << "the pause has doubled";
  copy.SetKnown(epoch);
  EXPECT_TRUE(copy.Knows(epoch));
  f.Pass(10 * f.retry);
  copy.Check(true, epoch);
  EXPECT_EQ(f.Take(), Strings{});
}

TEST(RecordCopyTest, OneThatIsNotResponsibleSendsNothing) {
  Floor f(2);
  RecordCopy copy(f.retry, &f.outbox);
  copy.Check(false, f.view->epoch);
  EXPECT_EQ(f.Take(), Strings{});
}

}  // namespace
}  // namespace ringmaster::membership
