// The record of a job on an API server: created once, changed by compare-and-swap, never guessed.
#include "operator/controllers/quorum_record_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>

#include "common/membership/message_json.h"
#include "common/membership/state_json.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using membership::MakeEpoch;
using testing::HasSubstr;

// A store that counts reads and changes, and can be unreachable.
class CountingApi : public local::InMemoryApi {
 public:
  using InMemoryApi::InMemoryApi;
  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    ++gets;
    if (away)
      return tl::unexpected(kube::Error{.code = ErrorCode::kUnavailable, .message = "away"});
    return InMemoryApi::Get(resource, ns, name);
  }
  kube::Result<Json> Update(const kube::Resource& resource, const std::string& ns,
                            const Json& object, const std::string& subresource) override {
    if (before_update) before_update(resource);
    ++updates;
    if (away)
      return tl::unexpected(kube::Error{.code = ErrorCode::kUnavailable, .message = "away"});
    return InMemoryApi::Update(resource, ns, object, subresource);
  }
  kube::Result<Json> Create(const kube::Resource& resource, const std::string& ns,
                            const Json& object) override {
    if (refuses_creation)
      return tl::unexpected(kube::Error{.code = *refuses_creation, .message = "refused"});
    return InMemoryApi::Create(resource, ns, object);
  }
  std::optional<ErrorCode> refuses_creation;
  std::atomic<int> gets = 0, updates = 0;
  std::atomic<bool> away = false;
  std::function<void(const kube::Resource&)> before_update;
};

class QuorumRecordStoreTest : public testing::Test {
 protected:
  QuorumRecordStoreTest() {
    const auto owner = api_->Create(kube::HorovodJobs(), "default",
                                    {{"apiVersion", api::kApiVersion},
                                     {"kind", api::kKind},
                                     {"metadata", {{"name", "digits"}}}});
    EXPECT_TRUE(owner) << owner.error().message;
    job_.ns = "default";
    job_.name = "digits";
    job_.uid = (*owner)["metadata"]["uid"].get<std::string>();
    id_ = {job_.ns, job_.name, job_.uid};
  }
  static membership::ViewPtr View(std::uint64_t lineage, std::uint64_t number) {
    membership::View view;
    view.epoch = MakeEpoch(lineage, number);
    view.coordinator = "a";
    view.pods = {{"a", "a", 1, "", "", "a:1", "", ""}, {"b", "b", 1, "", "", "b:1", "", ""}};
    view.ranks = {{0, 0, 1, "t", "s", false}, {1, 0, 1, "t", "s", false}};
    return std::make_shared<const membership::View>(view);
  }
  std::string Propose(membership::Ballot ballot) {
    membership::Message message;
    message.kind = membership::MessageKind::kPropose;
    message.from = ballot.pod;
    message.view = MakeEpoch(1, 1);
    message.ballot = ballot;
    message.base = View(1, 1);
    message.value = View(1, 2);
    return membership::EncodeMessage(message);
  }
  std::string Version() {
    const auto object = api_->Get(kube::ConfigMaps(), "default", "digits-record");
    return object ? (*object)["metadata"]["resourceVersion"].get<std::string>() : "none";
  }

  const std::shared_ptr<CountingApi> api_ =
      std::make_shared<CountingApi>(std::make_shared<local::Store>(local::StoreOptions{}));
  api::HorovodJob job_;
  JobIdentity id_;
  QuorumRecordStore records_{api_};
};

TEST_F(QuorumRecordStoreTest, IsMadeOnceAndKnownFromItsOwnWrite) {
  EXPECT_EQ(*records_.Newest(id_), std::nullopt);
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  const int gets = api_->gets;
  EXPECT_EQ((*records_.Newest(id_))->view->epoch, MakeEpoch(1, 1));
  EXPECT_EQ(api_->gets, gets) << "nobody else has written it as far as we know";
  EXPECT_EQ(records_.Bootstrap(job_, View(1, 1)).error().code, ErrorCode::kAlreadyExists);
  QuorumRecordStore another(api_);
  EXPECT_EQ((*another.Newest(id_))->view->epoch, MakeEpoch(1, 1));
  const Json made = (*api_->Get(kube::ConfigMaps(), "default", "digits-record"))["metadata"];
  EXPECT_EQ(made["labels"]["ringmaster.dev/job-uid"], job_.uid);
  EXPECT_EQ(made["ownerReferences"][0]["blockOwnerDeletion"], true);
}

TEST_F(QuorumRecordStoreTest, AnApiServerThatIsAwayIsNoReasonToBeginAnew) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  api_->away = true;
  QuorumRecordStore another(api_);
  EXPECT_EQ(another.Newest(id_).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(another.Bootstrap(job_, View(1, 1)).error().code, ErrorCode::kUnavailable);
}

TEST_F(QuorumRecordStoreTest, WhatIsAnotherJobsOrNonsenseIsNamedAndLeft) {
  const Json foreign = {{"metadata", {{"name", "digits-record"}}}, {"data", {{"record", "{}"}}}};
  ASSERT_TRUE(api_->Create(kube::ConfigMaps(), "default", foreign));
  EXPECT_THAT(records_.Newest(id_).error().message, HasSubstr("another job owns it"));
  EXPECT_FALSE(records_.Bootstrap(job_, View(1, 1)));
  ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), "default", "digits-record", {}));
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  ASSERT_TRUE(api_->Patch(kube::ConfigMaps(), "default", "digits-record",
                          {{"data", {{"record", "nonsense"}}}}, {}));
  QuorumRecordStore another(api_);
  EXPECT_THAT(another.Newest(id_).error().message, HasSubstr("default/digits-record"));
}

TEST_F(QuorumRecordStoreTest, ARecoveryMovesItUpAndItsOwnViewAloneEndsIt) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  ASSERT_TRUE(records_.BeginRecovery(id_, 3, View(1, 1)));
  EXPECT_EQ((*records_.Newest(id_))->lineage, 3u);
  for (const std::uint64_t lower : {2, 3}) {
    EXPECT_EQ(records_.BeginRecovery(id_, lower, View(1, 1)).error().code,
              ErrorCode::kAlreadyExists);
  }
  for (const std::uint64_t other : {2, 4}) {
    EXPECT_EQ(records_.Bootstrap(job_, View(other, 1)).error().code, ErrorCode::kAlreadyExists);
  }
  ASSERT_TRUE(records_.Bootstrap(job_, View(3, 1)));
  EXPECT_EQ((*records_.Newest(id_))->view->epoch, MakeEpoch(3, 1));
  EXPECT_EQ((*records_.Newest(id_))->lineage, 3u);
  EXPECT_EQ(records_.Bootstrap(job_, View(3, 1)).error().code, ErrorCode::kAlreadyExists);
}

// The record was deleted, and its votes with it.
TEST_F(QuorumRecordStoreTest, ARecoveryMakesALostRecordAnewAndItVotesOnNothingThatWasBefore) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), "default", "digits-record", {}));
  QuorumRecordStore next(api_);
  ASSERT_TRUE(next.BeginRecovery(id_, 2, View(1, 1)));
  const auto record = *next.Newest(id_);
  EXPECT_EQ(record->view->epoch, MakeEpoch(1, 1));
  EXPECT_EQ(record->lineage, 2u);
  ASSERT_TRUE(next.Answer(id_, Propose({0, "a"})));
  EXPECT_TRUE((*next.Newest(id_))->accepted.none());
  EXPECT_TRUE(next.Bootstrap(job_, View(2, 1)));
}

// The record may have named a view of which no pod knows.
TEST_F(QuorumRecordStoreTest, ARecordThatIsMadeAnewIsAboveEveryLineageThatWasBegun) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  ASSERT_TRUE(records_.BeginRecovery(id_, 2, View(1, 1)));
  ASSERT_TRUE(records_.Bootstrap(job_, View(2, 1)));
  for (const std::uint64_t above : {3, 4}) {
    ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), "default", "digits-record", {}));
    QuorumRecordStore next(api_);
    ASSERT_TRUE(next.BeginRecovery(id_, 2, View(1, 1)));
    EXPECT_EQ((*next.Newest(id_))->lineage, above);
    const Json job = *api_->Get(kube::HorovodJobs(), "default", "digits");
    EXPECT_EQ(job["status"]["epoch"], MakeEpoch(above, 0));
  }
}

TEST_F(QuorumRecordStoreTest, ARecoveryWhoseLineageCouldNotBeWrittenDoesNotBegin) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), "default", "digits-record", {}));
  QuorumRecordStore next(api_);
  api_->before_update = [&](const kube::Resource&) {
    api_->before_update = nullptr;
    ASSERT_TRUE(api_->Patch(kube::HorovodJobs(), "default", "digits",
                            {{"metadata", {{"labels", {{"a", "b"}}}}}}, {}));
  };
  EXPECT_EQ(next.BeginRecovery(id_, 2, View(1, 1)).error().code, ErrorCode::kConflict);
  EXPECT_EQ(Version(), "none");
  EXPECT_TRUE(next.BeginRecovery(id_, 2, View(1, 1)));
  const JobIdentity another{id_.ns, id_.name, "another"};
  EXPECT_EQ(next.BeginRecovery(another, 2, View(1, 1)).error().code, ErrorCode::kInternal);
}

TEST_F(QuorumRecordStoreTest, NothingIsKeptForASidecarThatOutlivesItsJob) {
  EXPECT_EQ(records_.Answer(id_, Propose({0, "a"})).error().code, ErrorCode::kNotFound);
  const int gets = api_->gets;
  EXPECT_EQ(*records_.Newest(id_), std::nullopt);
  EXPECT_EQ(api_->gets, gets + 1);
}

TEST_F(QuorumRecordStoreTest, AFirstViewOfALaterLineageMakesARecordOfThatLineage) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(2, 1)));
  EXPECT_EQ((*records_.Newest(id_))->lineage, 2u);
}

TEST_F(QuorumRecordStoreTest, WhoWasOvertakenLearnsOfItAndWritesOverNothing) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  QuorumRecordStore another(api_);
  ASSERT_TRUE(another.Newest(id_));
  ASSERT_TRUE(records_.BeginRecovery(id_, 2, View(1, 1)));
  EXPECT_EQ(another.BeginRecovery(id_, 3, View(1, 1)).error().code, ErrorCode::kConflict);
  EXPECT_EQ((*another.Newest(id_))->lineage, 2u) << "read again";
  QuorumRecordStore last(api_);
  ASSERT_TRUE(last.Newest(id_));
  ASSERT_TRUE(records_.BeginRecovery(id_, 3, View(1, 1)));
  EXPECT_EQ(last.BeginRecovery(id_, 4, View(1, 1)).error().code, ErrorCode::kConflict);
  ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), "default", "digits-record", {}));
  EXPECT_EQ(*last.Newest(id_), std::nullopt) << "it was deleted before it was read again";
}

// Nothing was created, so this or another operator may try again.
TEST_F(QuorumRecordStoreTest, ARecordThatIsRefusedClaimsNothing) {
  // kConflict is the answer while a quota is being counted.
  for (const ErrorCode code : {ErrorCode::kForbidden, ErrorCode::kConflict}) {
    api_->refuses_creation = code;
    EXPECT_EQ(records_.Bootstrap(job_, View(1, 1)).error().code, code);
    EXPECT_EQ((*api_->Get(kube::HorovodJobs(), "default", "digits"))["status"]["epoch"], 0);
  }
  api_->refuses_creation.reset();
  QuorumRecordStore another(api_);
  EXPECT_TRUE(another.Bootstrap(job_, View(1, 1)));
}

// The record may have been created, and another operator may have told pods of its view.
TEST_F(QuorumRecordStoreTest, ARecordOfWhichNobodyKnowsWhetherItWasMadeClaimsItsLineage) {
  api_->refuses_creation = ErrorCode::kUnavailable;
  EXPECT_EQ(records_.Bootstrap(job_, View(1, 1)).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ((*api_->Get(kube::HorovodJobs(), "default", "digits"))["status"]["epoch"],
            MakeEpoch(1, 0));
  api_->refuses_creation.reset();
  EXPECT_EQ(records_.Bootstrap(job_, View(1, 1)).error().code, ErrorCode::kConflict);
  EXPECT_EQ(Version(), "none");
  ASSERT_TRUE(records_.BeginRecovery(id_, 2, nullptr));
  EXPECT_EQ(records_.Answer(id_, Propose({0, "a"})).error().code, ErrorCode::kNotFound)
      << "it has no view to vote about";
  EXPECT_TRUE(records_.Bootstrap(job_, View(2, 1)));
}

// Decisions made without the record are void, and the job's status must not mention them.
TEST_F(QuorumRecordStoreTest, ARecordThatSomebodyElseHasMadeMeanwhileIsNotMissedAnyMore) {
  QuorumRecordStore late(api_);
  EXPECT_EQ(*late.Newest(id_), std::nullopt);
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  EXPECT_EQ(late.BeginRecovery(id_, 2, nullptr).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ((*late.Newest(id_))->view->epoch, MakeEpoch(1, 1));
  EXPECT_EQ((*api_->Get(kube::HorovodJobs(), "default", "digits"))["status"]["epoch"],
            MakeEpoch(1, 0));
}

TEST_F(QuorumRecordStoreTest, ARecoveryThatIsThereAlreadyIsNotBegunAgain) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  ASSERT_TRUE(records_.BeginRecovery(id_, 2, View(1, 1)));
  QuorumRecordStore another(api_);
  EXPECT_EQ(another.BeginRecovery(id_, 2, View(1, 1)).error().code, ErrorCode::kAlreadyExists);
}

TEST_F(QuorumRecordStoreTest, AVoteIsWrittenAndAnsweredAgainWithoutAWrite) {
  EXPECT_EQ(records_.Answer(id_, Propose({0, "a"})).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  QuorumRecordStore another(api_);
  ASSERT_TRUE(another.Newest(id_));  // another store will overtake it
  const std::string before = Version();
  const auto answer = records_.Answer(id_, Propose({0, "a"}));
  ASSERT_TRUE(answer) << answer.error().message;
  const std::string voted = Version();
  const int updates = api_->updates;
  EXPECT_NE(voted, before);
  EXPECT_EQ(*records_.Answer(id_, Propose({0, "a"})), *answer);
  EXPECT_EQ(api_->updates, updates);
  EXPECT_EQ(*another.Answer(id_, Propose({0, "a"})), *answer) << "after a lost race";
  EXPECT_EQ(Version(), voted);
  EXPECT_EQ((*another.Newest(id_))->accepted, (membership::Ballot{0, "a"}));
}

TEST_F(QuorumRecordStoreTest, AVoteThatCanNotBeWrittenIsNoneAndTriedOnceOnly) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  const int updates = api_->updates;
  api_->away = true;
  EXPECT_EQ(records_.Answer(id_, Propose({0, "a"})).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(api_->updates, updates + 1);
  api_->away = false;
  EXPECT_TRUE((*records_.Newest(id_))->accepted.none());
}

TEST_F(QuorumRecordStoreTest, WhatIsNoMessageIsRefused) {
  ASSERT_TRUE(records_.Bootstrap(job_, View(1, 1)));
  EXPECT_EQ(records_.Answer(id_, "nonsense").error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace ringmaster::controllers
