// The record of a job on each of the API servers, with two operators that both believe to lead.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "common/fields/parse.h"
#include "common/membership/message_json.h"
#include "common/membership/state_json.h"
#include "common/membership/view_json.h"
#include "operator/api/testing/job_object.h"
#include "operator/controllers/quorum_record_store.h"
#include "operator/local/testing/conformance.h"
#include "tests/support/rounds.h"
#include "tests/support/until.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using membership::MessageKind;
using ::testing::HasSubstr;

class QuorumRecordStoreServersTest : public local::testing::OnEveryServer {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnEveryServer::SetUp());
    ASSERT_NO_FATAL_FAILURE(ApplyJob());
    a_ = std::make_unique<QuorumRecordStore>(api_);
    b_ = std::make_unique<QuorumRecordStore>(api_);
  }
  // Everything belongs to its job: without it the record would be collected at once.
  void ApplyJob() {
    const auto made = api_->Create(kube::HorovodJobs(), ns_, api::testing::JobObject("digits", 2));
    ASSERT_TRUE(made) << made.error().message;
    const auto job = api::ParseHorovodJob(*made);
    ASSERT_TRUE(job) << api::ToString(job.error());
    job_ = *job;
    id_ = {job_.ns, job_.name, job_.uid};
  }
  static membership::ViewPtr First(const std::vector<std::string>& pods,
                                   std::uint64_t lineage = 1) {
    std::vector<membership::Candidate> candidates;
    for (const std::string& pod : pods) {
      membership::Candidate candidate;
      candidate.pod = {.uid = pod, .name = pod, .incarnation = 1};
      candidate.workers = {{.slot = 0, .incarnation = 1, .ready = true}};
      candidates.push_back(candidate);
    }
    membership::View view = membership::BootstrapView(candidates, 1);
    view.epoch = membership::MakeEpoch(lineage, 1);
    return std::make_shared<const membership::View>(view);
  }
  // The record's answer to a member that wants to decide the view after `first`.
  static MessageKind Prepare(QuorumRecordStore& store, const JobIdentity& id,
                             const membership::ViewPtr& first, std::int64_t round,
                             const std::string& pod) {
    membership::Message prepare;
    prepare.kind = MessageKind::kPrepare;
    prepare.from = pod;
    prepare.incarnation = 1;
    prepare.view = first->epoch;
    prepare.base = first;
    prepare.ballot = {round, pod};
    const auto text = store.Answer(id, membership::EncodeMessage(prepare));
    EXPECT_TRUE(text) << text.error().message;
    const auto answer = text ? membership::DecodeMessage(*text) : membership::DecodeMessage("");
    EXPECT_TRUE(answer);
    return answer ? answer->kind : MessageKind::kDecided;
  }

  api::HorovodJob job_;
  JobIdentity id_;
  std::unique_ptr<QuorumRecordStore> a_, b_;
};

TEST_P(QuorumRecordStoreServersTest, TheFirstViewIsMadeOnceAndEverybodyReadsTheSame) {
  EXPECT_FALSE(a_->Newest(id_).value());
  EXPECT_FALSE(b_->Newest(id_).value());
  ASSERT_TRUE(a_->Bootstrap(job_, First({"p", "q"})));
  // It has seen that there is no record, and writes on that basis.
  const auto late = b_->Bootstrap(job_, First({"p"}));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kAlreadyExists);
  const auto read = b_->Newest(id_);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((**read).view->pods.size(), 2u);
}

TEST_P(QuorumRecordStoreServersTest, OfTwoWhoFoundAtTheSameTimeOneSucceeds) {
  for (std::uint64_t lineage = 1; lineage < 6; ++lineage) {
    QuorumRecordStore stores[] = {QuorumRecordStore(api_), QuorumRecordStore(api_)};
    std::atomic<int> bootstrapped = 0;
    {
      std::jthread other(
          [&] { bootstrapped += stores[1].Bootstrap(job_, First({"p"}, lineage)) ? 1 : 0; });
      bootstrapped += stores[0].Bootstrap(job_, First({"p", "q"}, lineage)) ? 1 : 0;
    }
    EXPECT_EQ(bootstrapped, 1);
    // The state of a job that has never begun.
    ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), ns_, RecordName("digits"), {}));
    ASSERT_TRUE(api_->Patch(kube::HorovodJobs(), ns_, "digits", {{"status", {{"epoch", nullptr}}}},
                            {.subresource = "status"}));
  }
}

// A view from registrations of pods on one node each, with addresses and workers.
membership::ViewPtr Large(int pods, int slots, const std::string& generation = "0") {
  std::vector<membership::Candidate> candidates;
  std::mt19937_64 random(7);
  const auto port = [&] { return ":" + std::to_string(30000 + random() % 30000); };
  for (int i = 0; i < pods; ++i) {
    const std::string uid =
        fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", random() >> 32, random() >> 48,
                    random() >> 52, random() >> 52, random() >> 16);
    const std::string host = fmt::format("10.{}.{}.{}", random() % 256, i / 250, i % 250 + 1);
    membership::Candidate candidate;
    candidate.pod = {uid,
                     fmt::format("a-job-with-a-name-worker-{}", i),
                     1,
                     fmt::format("ip-10-0-{}-{}.eu-central-1.compute.internal", i / 250, i % 250),
                     "eu-central-1a",
                     host + port(),
                     host + port(),
                     host + port(),
                     true};
    for (int slot = 0; slot < slots; ++slot) {
      candidate.workers.push_back({.slot = static_cast<std::uint32_t>(slot),
                                   .incarnation = 1,
                                   .tcp = host + port(),
                                   .shm = fmt::format("rm-{}-{}{:016x}", uid, generation, random()),
                                   .ready = true});
    }
    candidates.push_back(std::move(candidate));
  }
  return std::make_shared<const membership::View>(
      membership::BootstrapView(std::move(candidates), 1));
}

// The next view: a twentieth of the pods is lost.
membership::ViewPtr After(const membership::View& view) {
  membership::View next = view;
  next.epoch += 1;
  next.parent = view.epoch;
  next.reason = membership::Reason::kPodLost;
  const auto stays = [](std::size_t pod) { return pod % 20 != 19; };
  next.pods.clear();
  next.ranks.clear();
  std::vector<std::uint32_t> index(view.pods.size());
  for (std::size_t i = 0; i < view.pods.size(); ++i) {
    index[i] = static_cast<std::uint32_t>(next.pods.size());
    if (stays(i)) next.pods.push_back(view.pods[i]);
  }
  for (membership::RankEntry rank : view.ranks) {
    if (!stays(rank.pod)) continue;
    rank.pod = index[rank.pod];
    next.ranks.push_back(rank);
  }
  return std::make_shared<const membership::View>(next);
}

membership::Message ProposalOf(const membership::ViewPtr& base) {
  membership::Message propose;
  propose.kind = MessageKind::kPropose;
  propose.from = base->pods[0].uid;
  propose.incarnation = 1;
  propose.view = base->epoch;
  propose.ballot = {1, base->pods[0].uid};
  propose.base = base;
  propose.value = After(*base);
  return propose;
}

// The plain form of either view is larger than an API server accepts.
TEST_P(QuorumRecordStoreServersTest, AJobOfAThousandPodsOfEightIsBootstrappedAndVotedOn) {
  const auto first = Large(1000, 8);
  ASSERT_GT(membership::EncodeView(*first).size(), std::size_t{1} << 20);
  const auto made = a_->Bootstrap(job_, first);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(Prepare(*a_, id_, first, 1, first->pods[0].uid), MessageKind::kPromise);
  const membership::Message propose = ProposalOf(first);
  const auto text = b_->Answer(id_, membership::EncodeMessage(propose));
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(membership::DecodeMessage(*text)->kind, MessageKind::kAccepted);
  QuorumRecordStore another(api_);
  const auto read = another.Newest(id_);
  ASSERT_TRUE(read && *read) << read.error().message;
  EXPECT_EQ(*(**read).view, *first);
  EXPECT_EQ(*(**read).accepted_value, *propose.value);
  ASSERT_TRUE(another.BeginRecovery(id_, 2, first));
}

// The largest jobs that the schema allows, by pods and by workers.
TEST_P(QuorumRecordStoreServersTest, TheLargestJobsFitIntoARecordAndAMessage) {
  if (support::SmallRounds()) GTEST_SKIP() << "a thousand pods run the same code";
  for (const auto& [pods, slots] : {std::pair{api::kMaxReplicas, 1}, {api::kMaxWorkers / 8, 8}}) {
    const auto first = Large(pods, slots);
    QuorumRecordStore records(api_);
    const auto made = records.Bootstrap(job_, first);
    ASSERT_TRUE(made) << made.error().message;
    const std::string propose = membership::EncodeMessage(ProposalOf(first));
    EXPECT_LT(propose.size() + 4096, fields::ParseLimits().bytes);
    const auto text = records.Answer(id_, propose);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(membership::DecodeMessage(*text)->kind, MessageKind::kAccepted);
    // The state of a job that has never begun.
    ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), ns_, RecordName("digits"), {}));
    ASSERT_TRUE(api_->Patch(kube::HorovodJobs(), ns_, "digits", {{"status", {{"epoch", nullptr}}}},
                            {.subresource = "status"}));
  }
}

// Smaller records have the old format, so that an operator of the previous version can take over.
TEST_P(QuorumRecordStoreServersTest, WhatAnOlderOperatorCouldWriteItCanRead) {
  const auto first = Large(600, 8);
  ASSERT_TRUE(a_->Bootstrap(job_, first));
  const auto object = api_->Get(kube::ConfigMaps(), ns_, RecordName("digits"));
  ASSERT_TRUE(object);
  const auto read = membership::DecodeRecord((*object)["data"]["record"].get<std::string>());
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(*read->view, *first);
  // A vote makes the record too long for the plain form: the old field must be gone.
  ASSERT_TRUE(a_->Answer(id_, membership::EncodeMessage(ProposalOf(first))));
  ASSERT_TRUE(b_->Newest(id_));
  const auto large = api_->Get(kube::ConfigMaps(), ns_, RecordName("digits"));
  ASSERT_TRUE(large);
  EXPECT_FALSE(large->contains("data"));
  EXPECT_TRUE(large->contains("binaryData"));
}

TEST_P(QuorumRecordStoreServersTest, APromiseBindsTheOtherOperatorToo) {
  const auto first = First({"p", "q"});
  ASSERT_TRUE(a_->Bootstrap(job_, first));
  EXPECT_EQ(Prepare(*b_, id_, first, 1, "p"), MessageKind::kPromise);
  EXPECT_EQ(Prepare(*a_, id_, first, 3, "q"), MessageKind::kPromise) << "a knew nothing of 1";
  EXPECT_EQ(Prepare(*b_, id_, first, 2, "p"), MessageKind::kRefused) << "b knew nothing of 3";
  EXPECT_EQ(Prepare(*a_, id_, first, 2, "p"), MessageKind::kRefused);
}

TEST_P(QuorumRecordStoreServersTest, ALineageBeginsOnceAndEndsWithOneView) {
  const auto first = First({"p", "q"});
  ASSERT_TRUE(a_->Bootstrap(job_, first));
  EXPECT_TRUE(b_->Newest(id_).value());
  ASSERT_TRUE(a_->BeginRecovery(id_, 2, first));
  EXPECT_EQ(b_->BeginRecovery(id_, 2, first).error().code, ErrorCode::kConflict)
      << "it knew lineage 1";
  EXPECT_EQ(b_->BeginRecovery(id_, 2, first).error().code, ErrorCode::kAlreadyExists);
  const auto recovered = First({"p"}, 2);
  ASSERT_TRUE(b_->Bootstrap(job_, recovered));
  EXPECT_FALSE(a_->Bootstrap(job_, recovered));
  EXPECT_EQ((*a_->Newest(id_))->view->epoch, recovered->epoch);
}

// An operator that should have ended has seen that there is no record yet.
TEST_P(QuorumRecordStoreServersTest, ARecordThatIsDeletedAtOnceIsNotMadeAnewWithAnotherView) {
  EXPECT_FALSE(b_->Newest(id_).value());
  ASSERT_TRUE(a_->Bootstrap(job_, First({"p", "q"})));
  ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), ns_, RecordName("digits"), {}));
  EXPECT_EQ(b_->Bootstrap(job_, First({"p"})).error().code, ErrorCode::kConflict);
  EXPECT_FALSE(b_->Newest(id_).value());
  // A recovery, which asks all pods, creates it anew: for its lineage, and without a view.
  ASSERT_TRUE(b_->BeginRecovery(id_, 2, nullptr));
  QuorumRecordStore another(api_);  // the first store relies on its own copy until it writes
  const auto record = another.Newest(id_);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((**record).view, nullptr);
  EXPECT_EQ((**record).lineage, 2u);
  EXPECT_EQ(another.BeginRecovery(id_, 2, nullptr).error().code, ErrorCode::kAlreadyExists);
  ASSERT_TRUE(another.Bootstrap(job_, First({"p"}, 2)));
  EXPECT_FALSE(b_->Bootstrap(job_, First({"q"}, 2)));
}

TEST_P(QuorumRecordStoreServersTest, TheRecordGoesWithItsJobAndIsNoneOfItsSuccessors) {
  ASSERT_TRUE(a_->Bootstrap(job_, First({"p"})));
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), ns_, "digits", {.propagation = "Orphan"}));
  ASSERT_TRUE(support::Until([&] { return !api_->Get(kube::HorovodJobs(), ns_, "digits"); }));
  const JobIdentity former = id_;
  ASSERT_NO_FATAL_FAILURE(ApplyJob());
  ASSERT_NE(former.uid, id_.uid);
  const auto foreign = a_->Newest(id_);
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message, HasSubstr("another job owns it"));
  ASSERT_TRUE(api_->Delete(kube::ConfigMaps(), ns_, RecordName("digits"), {}));
  ASSERT_TRUE(a_->Bootstrap(job_, First({"p"})));
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), ns_, "digits", {}));
  EXPECT_TRUE(
      support::Until([&] { return !api_->Get(kube::ConfigMaps(), ns_, RecordName("digits")); }));
}

RM_ON_EVERY_SERVER(QuorumRecordStoreServersTest);

}  // namespace
}  // namespace ringmaster::controllers
