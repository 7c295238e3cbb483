#include "operator/runtime/object_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ObjectFeedTest : public testing::Test {
 protected:
  // The handler's calls since the last time: "a 5 uid", or with a minus for a deletion.
  std::vector<std::string> Told() { return std::exchange(told_, {}); }
  std::string VersionOf(const ObjectFeed& feed, const std::string& name) {
    const ObjectPtr object = feed.cache().Get("ns", name);
    return object == nullptr ? "none" : MetaField(*object, "resourceVersion");
  }
  void List(ObjectFeed* feed, int version, const std::vector<kube::Json>& objects) {
    feed->BeginList();
    for (const kube::Json& object : objects) feed->TakeListed(object, std::to_string(version));
    feed->EndList(std::to_string(version), [this] { told_.emplace_back("synced"); });
  }

  std::vector<std::string> told_;
  const ObjectFeed::Handler handler_ = [this](const kube::Json& object, bool deleted) {
    told_.push_back((deleted ? "-" : "") + MetaField(object, "name") + " " +
                    MetaField(object, "resourceVersion") + " " + MetaField(object, "uid"));
  };
  ObjectFeed feed_{{}, handler_};
};

TEST_F(ObjectFeedTest, OfEachNewStateTheHandlerHearsOnce) {
  List(&feed_, 10, {Object("a", 5), Object("b", 6)});
  EXPECT_THAT(Told(), ElementsAre("a 5 uid", "b 6 uid", "synced"));
  feed_.TakeWatched(Object("a", 11));
  feed_.TakeWatched(Object("a", 7));
  feed_.TakeDeleted(Object("b", 12));
  EXPECT_THAT(Told(), ElementsAre("a 11 uid", "-b 12 uid")) << "what is older is no news";
  EXPECT_EQ(VersionOf(feed_, "a"), "11");
  EXPECT_EQ(VersionOf(feed_, "b"), "none");
}

TEST_F(ObjectFeedTest, WhatAListLacksHasGoneAndTheCacheIsSyncedBeforeThatIsTold) {
  List(&feed_, 10, {Object("a", 5), Object("b", 6)});
  feed_.TakeWatched(Object("new", 31));
  Told();
  List(&feed_, 30, {Object("a", 5)});
  EXPECT_THAT(Told(), ElementsAre("a 5 uid", "synced", "-b 6 uid"));
  EXPECT_EQ(VersionOf(feed_, "new"), "31") << "it is newer than the list";
}

TEST_F(ObjectFeedTest, AListThatBeginsAgainCountsWhatItShowsFromThen) {
  List(&feed_, 10, {Object("a", 5)});
  Told();
  feed_.BeginList();
  feed_.TakeListed(Object("a", 5), "30");
  List(&feed_, 31, {});
  EXPECT_THAT(Told(), ElementsAre("a 5 uid", "synced", "-a 5 uid"));
}

TEST_F(ObjectFeedTest, TheDeletionOfAFormerObjectIsToldBeforeItsSuccessor) {
  feed_.TakeWatched(Object("a", 5, "first"));
  feed_.TakeWatched(Object("a", 9, "second"));
  EXPECT_THAT(Told(), ElementsAre("a 5 first", "-a 5 first", "a 9 second"));
  feed_.Observe(Object("a", 10, "third"));
  feed_.TakeWatched(Object("a", 11, "third"));
  EXPECT_THAT(Told(), ElementsAre("-a  second", "a 11 third"))
      << "its last state is overwritten: only its name is known";
}

TEST_F(ObjectFeedTest, WhatIsNotStoredIsPassedOnAndItsDeletionIsTold) {
  ObjectFeed feed({.keep = {},
                   .stores = [](const kube::Json& pod) { return MetaField(pod, "uid") == "job"; },
                   .index = {}},
                  handler_);
  List(&feed, 10, {Object("a", 5, "job"), Object("b", 6, "other")});
  EXPECT_THAT(Told(), ElementsAre("a 5 job", "b 6 other", "synced"));
  EXPECT_EQ(VersionOf(feed, "b"), "none");
  EXPECT_FALSE(feed.Observe(Object("b", 7, "other")));
  List(&feed, 20, {});
  EXPECT_THAT(Told(), ElementsAre("synced", "-a 5 job", "-b  other"));
}

TEST_F(ObjectFeedTest, AnObjectThatLeavesTheStoredOnesIsDeletedFirst) {
  ObjectFeed feed(
      {.keep = {},
       .stores = [](const kube::Json& pod) { return MetaField(pod, "resourceVersion") < "6"; },
       .index = {}},
      handler_);
  feed.TakeWatched(Object("a", 5));
  feed.TakeWatched(Object("a", 7));
  EXPECT_THAT(Told(), ElementsAre("a 5 uid", "-a 5 uid", "a 7 uid"));
  EXPECT_THAT(feed.cache().All(), IsEmpty());
}

TEST_F(ObjectFeedTest, OnlyWhatIsKeptIsStoredAndTold) {
  ObjectFeed feed({.keep =
                       [](kube::Json object) {
                         object["metadata"].erase("uid");
                         return object;
                       },
                   .stores = {},
                   .index = {}},
                  handler_);
  feed.TakeWatched(Object("a", 5));
  EXPECT_THAT(Told(), ElementsAre("a 5 "));
  EXPECT_TRUE(feed.Observe(Object("a", 6)));
  EXPECT_FALSE(feed.Observe(Object("a", 4))) << "the cache is newer";
  EXPECT_FALSE((*feed.cache().Get("ns", "a"))["metadata"].contains("uid"));
  EXPECT_THAT(Told(), IsEmpty()) << "the watch will show it";
}

}  // namespace
}  // namespace ringmaster::runtime
