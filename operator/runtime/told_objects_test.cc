#include "operator/runtime/told_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

bool Gone(const ObjectCache::Key&, const std::string&) { return true; }

TEST(ToldObjectsTest, AnotherObjectWithTheNameReplacesTheFormerOnce) {
  ToldObjects told;
  EXPECT_EQ(told.TakeReplaced(Stub("ns", "a", "1")), std::nullopt);
  told.Add(Stub("ns", "a", "1"));
  EXPECT_EQ(told.TakeReplaced(Stub("ns", "a", "1")), std::nullopt) << "it is the same";
  EXPECT_EQ(told.TakeReplaced(Stub("other", "a", "2")), std::nullopt);
  EXPECT_EQ(told.TakeReplaced(Stub("ns", "a", "2")), "1");
  EXPECT_EQ(told.TakeReplaced(Stub("ns", "a", "2")), std::nullopt);
}

TEST(ToldObjectsTest, TheEndOfAFormerObjectLeavesItsSuccessorUnlessTheNameIsForgotten) {
  ToldObjects told;
  told.Add(Stub("ns", "a", "2"));
  told.Remove(Stub("ns", "a", "1"));
  EXPECT_EQ(told.TakeReplaced(Stub("ns", "a", "3")), "2");
  told.Add(Stub("ns", "a", "3"));
  told.Remove(Stub("ns", "a", "3"));
  told.Add(Stub("ns", "b", "4"));
  told.RemoveName(Stub("ns", "b", "5"));
  EXPECT_THAT(told.TakeGone(Gone), IsEmpty());
}

TEST(ToldObjectsTest, ThoseThatHaveGoneAreTakenWithNameAndUid) {
  ToldObjects told;
  told.Add(Stub("ns", "a", "1"));
  told.Add(Stub("", "node", "2"));
  EXPECT_THAT(told.TakeGone([](const ObjectCache::Key& key, const std::string& uid) {
    return key == ObjectCache::Key("", "node") && uid == "2";
  }),
              ElementsAre(Stub("", "node", "2")));
  EXPECT_THAT(told.TakeGone(Gone), ElementsAre(Stub("ns", "a", "1")));
  EXPECT_THAT(told.TakeGone(Gone), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::runtime
