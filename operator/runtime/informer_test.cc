#include "operator/runtime/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/runtime/testing/scripted_api.h"

namespace ringmaster::runtime {
namespace {

using kube::ErrorCode;
using testing::ElementsAre;
using Type = kube::WatchEvent::Type;

class InformerTest : public testing::Test {
 protected:
  ~InformerTest() override { informer_.Stop(); }

  void StartWith(std::vector<kube::Json> objects) {
    api_->SetList(10, std::move(objects));
    informer_.Start();
    ASSERT_TRUE(informer_.WaitForSync(kPatience));
    ASSERT_EQ(api_->AwaitWatch(1), "10");
  }

  // The handler's calls, once there are `n`: "a", or "-a" for a deletion.
  std::vector<std::string> Told(std::size_t n) {
    std::unique_lock lock(mu_);
    changed_.wait_for(lock, kPatience, [&] { return told_.size() >= n; });
    return told_;
  }
  std::string VersionOf(const std::string& name) {
    const ObjectPtr object = informer_.Get("ns", name);
    return object == nullptr ? "none" : MetaField(*object, "resourceVersion");
  }

  std::shared_ptr<ScriptedApi> api_ = std::make_shared<ScriptedApi>();
  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::string> told_;  // guarded by mu_
  Informer informer_{api_, kube::Pods(),
                     InformerOptions{.relist_backoff = std::chrono::milliseconds(1),
                                     .max_relist_backoff = std::chrono::milliseconds(2)},
                     [this](const kube::Json& object, bool deleted) {
                       const std::lock_guard lock(mu_);
                       told_.push_back((deleted ? "-" : "") + MetaField(object, "name"));
                       changed_.notify_all();
                     }};
};

TEST_F(InformerTest, ListsOnceAndThenFollowsTheWatch) {
  StartWith({Object("a", 5)});
  api_->Push(Type::kAdded, Object("b", 11));
  api_->Push(Type::kModified, Object("a", 12));
  api_->Push(Type::kDeleted, Object("b", 13));
  EXPECT_THAT(Told(4), ElementsAre("a", "b", "a", "-b"));
  EXPECT_EQ(VersionOf("a"), "12");
  EXPECT_EQ(VersionOf("b"), "none");
  EXPECT_EQ(informer_.All().size(), 1u);
  EXPECT_EQ(api_->lists(), 1);
}

TEST_F(InformerTest, AWatchThatEndsGoesOnWhereItWas) {
  StartWith({});
  api_->Push(Type::kBookmark, Object("", 17));
  api_->EndWatch();
  EXPECT_EQ(api_->AwaitWatch(2), "17");
  EXPECT_EQ(api_->lists(), 1);
}

TEST_F(InformerTest, ALostConnectionIsNoReasonToListAgain) {
  StartWith({});
  api_->Push(Type::kAdded, Object("a", 11));
  api_->BreakWatch(ErrorCode::kUnavailable);
  EXPECT_EQ(api_->AwaitWatch(2), "11");
  EXPECT_EQ(api_->lists(), 1);
  EXPECT_EQ(informer_.LastError(), "broken");
}

TEST_F(InformerTest, AWatchThatHasLostItsPlaceListsAgainAndTellsOfMissedDeletes) {
  StartWith({Object("a", 5), Object("b", 6)});
  api_->SetList(30, {Object("a", 5), Object("c", 21)});
  api_->BreakWatch(ErrorCode::kGone);
  EXPECT_EQ(api_->AwaitWatch(2), "30");
  EXPECT_THAT(Told(5), ElementsAre("a", "b", "a", "c", "-b"));
  EXPECT_EQ(VersionOf("b"), "none");
  EXPECT_EQ(VersionOf("c"), "21");
}

TEST_F(InformerTest, AFirstListThatFailsIsTriedAgainAndSaysWhy) {
  api_->FailLists({.code = ErrorCode::kForbidden, .message = "not for you"});
  informer_.Start();
  ASSERT_TRUE(api_->AwaitLists(2));
  EXPECT_FALSE(informer_.WaitForSync(std::chrono::milliseconds(0)));
  EXPECT_EQ(informer_.LastError(), "not for you");
  api_->SetList(10, {Object("a", 5)});
  EXPECT_TRUE(informer_.WaitForSync(kPatience));
  EXPECT_EQ(informer_.LastError(), "");
}

TEST_F(InformerTest, OldNewsDoesNotHideWhatWeHaveWritten) {
  StartWith({Object("a", 5)});
  informer_.Observe(Object("a", 20));
  api_->Push(Type::kModified, Object("a", 15));
  api_->Push(Type::kAdded, Object("b", 21));
  EXPECT_THAT(Told(2), ElementsAre("a", "b"));
  EXPECT_EQ(VersionOf("a"), "20");
}

TEST_F(InformerTest, WhatWasDeletedDoesNotComeBackWithTheAnswerToAnEarlierWrite) {
  StartWith({Object("a", 5, "first")});
  api_->Push(Type::kDeleted, Object("a", 12, "first"));
  EXPECT_THAT(Told(2), ElementsAre("a", "-a"));
  informer_.Observe(Object("a", 11, "first"));
  EXPECT_EQ(VersionOf("a"), "none");
  informer_.Observe(Object("a", 13, "second"));
  EXPECT_EQ(VersionOf("a"), "13") << "its successor is another";
}

TEST_F(InformerTest, TheMemoryOfWhatWasDeletedHasABound) {
  StartWith({});
  api_->Push(Type::kDeleted, Object("a", 12));
  api_->Push(Type::kDeleted, Object("b", 13));
  Told(2);
  EXPECT_FALSE(informer_.Observe(Object("a", 11)));
  EXPECT_FALSE(informer_.Observe(Object("b", 11)));
  for (int i = 0; i < 4096; ++i)
    api_->Push(Type::kDeleted, Object("c" + std::to_string(i), 14 + i));
  Told(2 + 4096);
  EXPECT_TRUE(informer_.Observe(Object("a", 11)));
}

TEST_F(InformerTest, WhatIsBackAfterItsEndIsObservedAgain) {
  StartWith({});
  api_->Push(Type::kDeleted, Object("a", 12));
  api_->Push(Type::kAdded, Object("a", 13));
  Told(2);
  EXPECT_TRUE(informer_.Observe(Object("a", 14))) << "out of the selection and back";
  api_->Push(Type::kDeleted, Object("a", 15));
  Told(3);
  api_->SetList(1000, {Object("a", 5)});
  api_->BreakWatch(ErrorCode::kGone);
  ASSERT_EQ(api_->AwaitWatch(2), "1000");
  EXPECT_TRUE(informer_.Observe(Object("a", 1001))) << "restored from a backup";
}

TEST_F(InformerTest, AListThatShowsAnotherObjectOfTheNameTellsOfTheEndOfTheFirst) {
  StartWith({Object("a", 5, "first")});
  api_->SetList(30, {Object("a", 21, "second")});
  api_->BreakWatch(ErrorCode::kGone);
  EXPECT_EQ(api_->AwaitWatch(2), "30");
  EXPECT_THAT(Told(3), ElementsAre("a", "-a", "a"));
  EXPECT_EQ(VersionOf("a"), "21");
}

TEST_F(InformerTest, TheFirstOneEndsAlsoWhereTheSecondWasWrittenByUs) {
  StartWith({Object("a", 5, "first"), Object("b", 6, "first")});
  informer_.Observe(Object("a", 20, "second"));
  informer_.Observe(Object("b", 40, "second"));
  api_->SetList(30, {Object("a", 20, "second")});
  api_->BreakWatch(ErrorCode::kGone);
  EXPECT_EQ(api_->AwaitWatch(2), "30");
  EXPECT_THAT(Told(5), ElementsAre("a", "b", "-a", "a", "-b"));
  EXPECT_EQ(VersionOf("a"), "20");
  EXPECT_EQ(VersionOf("b"), "40") << "younger than the list";
}

TEST_F(InformerTest, VersionsThatAreNoNumbersAreNotCompared) {
  StartWith({Object("a", 20)});
  for (const char* version : {"15x", "x15", "99999999999999999999", ""}) {
    kube::Json object = Object("a", 0);
    object["metadata"]["resourceVersion"] = version;
    EXPECT_TRUE(informer_.Observe(object)) << version;
    EXPECT_EQ(VersionOf("a"), version);
    EXPECT_TRUE(informer_.Observe(Object("a", 20))) << version;
  }
  EXPECT_TRUE(informer_.Observe(Object("a", 20))) << "the same again is not older";
  EXPECT_FALSE(informer_.Observe(Object("a", 19)));
}

TEST(MetaFields, ThatAreAbsentOrNoTextAreEmpty) {
  EXPECT_EQ(MetaField({{"metadata", {{"name", "a"}}}}, "name"), "a");
  for (const char* odd :
       {"{}", R"({"metadata": "a"})", R"({"metadata": {}})", R"({"metadata": {"name": 1}})"}) {
    EXPECT_EQ(MetaField(kube::Json::parse(odd), "name"), "") << odd;
  }
}

TEST_F(InformerTest, TheEndOfAFormerObjectLeavesItsSuccessor) {
  StartWith({Object("a", 5, "first")});
  informer_.Observe(Object("a", 20, "second"));
  api_->Push(Type::kDeleted, Object("a", 12, "first"));
  EXPECT_THAT(Told(2), ElementsAre("a", "-a"));
  EXPECT_EQ(VersionOf("a"), "20");
}

TEST_F(InformerTest, AnObjectMadeWhileTheListWasOnItsWayIsNotMissing) {
  StartWith({});
  api_->DuringLists([this] { informer_.Observe(Object("new", 31)); });
  api_->SetList(30, {});
  api_->BreakWatch(ErrorCode::kGone);
  ASSERT_EQ(api_->AwaitWatch(2), "30");
  EXPECT_EQ(VersionOf("new"), "31");
  EXPECT_TRUE(Told(0).empty());
}

TEST_F(InformerTest, AServerThatWasRestoredFromABackupIsBelieved) {
  StartWith({Object("a", 5)});
  // These were written after the backup, and lost with the restored server's data.
  informer_.Observe(Object("a", 20));
  informer_.Observe(Object("lost", 21));
  informer_.Observe(Object("last", 1000));
  informer_.Observe(Object("lost last", 1000));
  api_->DuringLists([this] { informer_.Observe(Object("b", 1001)); });
  api_->SetList(1000, {Object("a", 7), Object("b", 6), Object("last", 8)});
  api_->BreakWatch(ErrorCode::kGone);
  ASSERT_EQ(api_->AwaitWatch(2), "1000");
  EXPECT_EQ(VersionOf("a"), "7");
  EXPECT_EQ(VersionOf("b"), "1001") << "written after the list";
  EXPECT_EQ(VersionOf("last"), "8");
  EXPECT_EQ(VersionOf("lost"), "none");
  EXPECT_EQ(VersionOf("lost last"), "none");
  EXPECT_THAT(Told(5), ElementsAre("a", "a", "last", "-lost", "-lost last"));
}

TEST(InformerPace, WatchesThatAreClosedAtOnceAreBegunMoreAndMoreSlowly) {
  const auto api = std::make_shared<ScriptedApi>();
  api->SetList(10, {});
  Informer informer(
      api, kube::Pods(),
      {.relist_backoff = std::chrono::milliseconds(20), .short_watch = std::chrono::minutes(1)},
      [](const kube::Json&, bool) {});
  for (int i = 0; i < 5; ++i) api->EndWatch();
  const auto begin = std::chrono::steady_clock::now();
  informer.Start();
  ASSERT_EQ(api->AwaitWatch(6), "10");
  EXPECT_GE(std::chrono::steady_clock::now() - begin,
            std::chrono::milliseconds(20 + 40 + 80 + 160 + 320));
  EXPECT_EQ(informer.state().error, "") << "slow, but nothing has failed";
  informer.Stop();
}

TEST(InformerPace, AServerThatIsBackAndHasForgottenTheVersionIsListedAtOnceButNotForEver) {
  const auto api = std::make_shared<ScriptedApi>();
  api->SetList(10, {});
  Informer informer(api, kube::Pods(), {.relist_backoff = std::chrono::milliseconds(5)},
                    [](const kube::Json&, bool) {});
  for (int i = 0; i < 6; ++i) api->BreakWatch(ErrorCode::kUnavailable);  // the next pause is 320 ms
  informer.Start();
  ASSERT_EQ(api->AwaitWatch(7), "10");
  const auto began = std::chrono::steady_clock::now();
  api->SetList(30, {});
  api->BreakWatch(ErrorCode::kGone);
  ASSERT_EQ(api->AwaitWatch(8), "30");
  const auto listed = std::chrono::steady_clock::now();
  EXPECT_LT(listed - began, std::chrono::milliseconds(320));
  api->BreakWatch(ErrorCode::kGone);
  ASSERT_EQ(api->AwaitWatch(9), "30");
  EXPECT_GE(std::chrono::steady_clock::now() - listed, std::chrono::milliseconds(600))
      << "a list that doesn't help is no reason to hurry";
  informer.Stop();
}

TEST_F(InformerTest, ItsStateTellsOfFailuresAndThatTheyAreOver) {
  StartWith({Object("a", 5)});
  EXPECT_TRUE(informer_.state().synced);
  EXPECT_EQ(informer_.state().resource, "pods");
  api_->BreakWatch(ErrorCode::kForbidden);
  ASSERT_EQ(api_->AwaitWatch(2), "10");
  EXPECT_EQ(informer_.state().error, "broken");
  EXPECT_EQ(informer_.state().failures, 1u);
  api_->Push(Type::kAdded, Object("b", 11));
  EXPECT_THAT(Told(2), ElementsAre("a", "b"));
  EXPECT_EQ(informer_.state().error, "");
  EXPECT_EQ(informer_.All().size(), 2u);
}

// Checks that watches and lists are repeated with pauses.
class InformerPaceTest : public testing::Test {
 protected:
  ~InformerPaceTest() override { informer_.Stop(); }
  std::chrono::milliseconds Since() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 began_);
  }
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::shared_ptr<ScriptedApi> api_ = std::make_shared<ScriptedApi>();
  Informer informer_{api_, kube::Pods(),
                     InformerOptions{.label_selector = "mine=true",
                                     .relist_backoff = std::chrono::milliseconds(20),
                                     .max_relist_backoff = std::chrono::milliseconds(60'000)},
                     [](const kube::Json&, bool) {}};
};

TEST_F(InformerPaceTest, WatchesThatBreakAreBegunMoreAndMoreSlowly) {
  api_->SetList(10, {});
  for (int i = 0; i < 4; ++i) api_->BreakWatch(ErrorCode::kUnavailable);
  informer_.Start();
  ASSERT_EQ(api_->AwaitWatch(5), "10");
  EXPECT_GE(Since(), std::chrono::milliseconds(20 + 40 + 80 + 160));
  EXPECT_THAT(api_->selectors(), ElementsAre("mine=true"));
}

TEST_F(InformerPaceTest, TheServersWaitIsKept) {
  api_->SetList(10, {});
  api_->BreakWatch({.code = ErrorCode::kTooManyRequests,
                    .message = "slow down",
                    .retry_after = std::chrono::seconds(1)});
  informer_.Start();
  ASSERT_EQ(api_->AwaitWatch(2), "10");
  EXPECT_GE(Since(), std::chrono::seconds(1));
}

TEST(InformerPace, AServersWaitIsKeptNoLongerThanTheLongestOfItsOwn) {
  const auto api = std::make_shared<ScriptedApi>();
  api->SetList(10, {});
  api->BreakWatch({.code = ErrorCode::kUnavailable,
                   .http_status = 503,
                   .message = "maintenance",
                   .retry_after = std::chrono::hours(1)});
  Informer informer(api, kube::Pods(),
                    {.relist_backoff = std::chrono::milliseconds(10),
                     .max_relist_backoff = std::chrono::milliseconds(20)},
                    [](const kube::Json&, bool) {});
  informer.Start();
  EXPECT_EQ(api->AwaitWatch(2), "10");
  informer.Stop();
}

// As by a load balancer that closes what is quiet for long.
TEST(InformerPace, WatchesThatAreCutWhenTheyHaveLastedAreBegunAgainSoon) {
  const auto api = std::make_shared<ScriptedApi>();
  api->SetList(10, {});
  Informer informer(api, kube::Pods(),
                    {.relist_backoff = std::chrono::milliseconds(10),
                     .max_relist_backoff = std::chrono::milliseconds(60'000),
                     .short_watch = std::chrono::milliseconds(0)},
                    [](const kube::Json&, bool) {});
  for (int i = 0; i < 13; ++i) api->BreakWatch(ErrorCode::kUnavailable);
  const auto began = std::chrono::steady_clock::now();
  informer.Start();
  EXPECT_EQ(api->AwaitWatch(14), "10");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20))
      << "10 ms doubled thirteen times are 82 s";
  informer.Stop();
}

TEST_F(InformerPaceTest, ListsThatFailAreTriedMoreAndMoreSlowly) {
  api_->FailLists({.code = ErrorCode::kUnavailable, .message = "away"});
  informer_.Start();
  ASSERT_TRUE(api_->AwaitLists(5));
  EXPECT_GE(Since(), std::chrono::milliseconds(20 + 40 + 80 + 160));
}

TEST_F(InformerPaceTest, WatchesThatWentWellLeaveNoWaitBehind) {
  api_->SetList(10, {});
  for (int i = 0; i < 12; ++i) {
    api_->Push(Type::kBookmark, Object("", 11));
    api_->EndWatch();
  }
  api_->BreakWatch(ErrorCode::kUnavailable);
  informer_.Start();
  ASSERT_EQ(api_->AwaitWatch(14), "11");
  EXPECT_LT(Since(), std::chrono::seconds(10)) << "20 ms doubled twelve times are 82 s";
}

TEST(InformerPace, HasALimit) {
  const auto api = std::make_shared<ScriptedApi>();
  api->FailLists({.code = ErrorCode::kUnavailable, .message = "away"});
  const auto began = std::chrono::steady_clock::now();
  Informer informer(api, kube::Pods(),
                    {.relist_backoff = std::chrono::milliseconds(10),
                     .max_relist_backoff = std::chrono::milliseconds(20)},
                    [](const kube::Json&, bool) {});
  informer.Start();
  ASSERT_TRUE(api->AwaitLists(12));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(8));
  informer.Stop();
}

// Objects whose name begins with "x" are passed on and not stored.
class PassingInformerTest : public InformerTest {
 protected:
  ~PassingInformerTest() override { passing_.Stop(); }
  void StartWith(std::vector<kube::Json> objects) {
    api_->SetList(10, std::move(objects));
    passing_.Start();
    ASSERT_TRUE(passing_.WaitForSync(kPatience));
    ASSERT_EQ(api_->AwaitWatch(1), "10");
  }
  Informer passing_{api_, kube::Pods(),
                    InformerOptions{.stores =
                                        [](const kube::Json& object) {
                                          return MetaField(object, "name").front() != 'x';
                                        },
                                    .relist_backoff = std::chrono::milliseconds(1),
                                    .max_relist_backoff = std::chrono::milliseconds(2)},
                    [this](const kube::Json& object, bool deleted) {
                      const std::lock_guard lock(mu_);
                      told_.push_back((deleted ? "-" : "") + MetaField(object, "name"));
                      changed_.notify_all();
                    }};
};

TEST_F(PassingInformerTest, WhatIsNotStoredIsHandedOnUntilItsEnd) {
  StartWith({Object("a", 5), Object("x1", 6), Object("x2", 7)});
  api_->Push(Type::kModified, Object("x1", 11));
  api_->Push(Type::kDeleted, Object("x1", 12));
  EXPECT_THAT(Told(5), ElementsAre("a", "x1", "x2", "x1", "-x1"));
  EXPECT_EQ(passing_.All().size(), 1u);
  EXPECT_FALSE(passing_.Observe(Object("x2", 13)));
}

TEST_F(PassingInformerTest, AListTellsOfTheEndOfOneWhoseNameAnotherHasTaken) {
  StartWith({Object("x1", 6, "uid-1")});
  api_->SetList(30, {Object("x1", 21, "uid-2")});
  api_->BreakWatch(ErrorCode::kGone);
  EXPECT_EQ(api_->AwaitWatch(2), "30");
  EXPECT_THAT(Told(3), ElementsAre("x1", "-x1", "x1"));
}

TEST_F(PassingInformerTest, AListTellsWhatHasGoneOfThemToo) {
  StartWith({Object("x1", 6, "uid-1"), Object("x2", 7, "uid-2")});
  api_->SetList(30, {Object("x2", 7, "uid-2")});
  api_->BreakWatch(ErrorCode::kGone);
  EXPECT_THAT(Told(4), ElementsAre("x1", "x2", "x2", "-x1"));
}

}  // namespace
}  // namespace ringmaster::runtime
