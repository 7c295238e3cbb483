#include "operator/controllers/decision_applier.h"

#include "operator/controllers/quorum_record_store.h"
#include "operator/controllers/testing/parts_fixture.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using runtime::MetaField;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Keeps the notices that are sent.
class Sink : public NoticeSink {
 public:
  void Send(const planner::Notice& notice) override { sent.push_back(notice); }
  std::vector<planner::Notice> sent;
};

class DecisionApplierTest : public testing::PartsTest {
 protected:
  DecisionApplierTest() {
    MakePod(0);
    snapshot_.job = job_;
    snapshot_.now = *api::ParseTime("2026-01-31T12:00:00Z");
    snapshot_.pods = {{.name = "digits-worker-0", .uid = MetaField(Pod(0), "uid")}};
  }
  std::string uid() const { return snapshot_.pods[0].uid; }
  Json Annotations() { return Pod(0).value("/metadata/annotations"_json_pointer, Json::object()); }
  std::shared_ptr<Sink> Connect() {
    auto sink = std::make_shared<Sink>();
    (void)registry_.Connect({.job_namespace = "default",
                             .job_name = "digits",
                             .job_uid = job_.uid,
                             .pod_name = "digits-worker-0",
                             .pod_uid = uid()},
                            sink);
    return sink;
  }
  static membership::ViewPtr FirstView() {
    membership::Candidate candidate;
    candidate.pod.uid = "a";
    candidate.workers = {{.slot = 0, .incarnation = 1, .tcp = "t", .shm = "", .ready = true}};
    return std::make_shared<const membership::View>(membership::BootstrapView({candidate}, 1));
  }

  QuorumRecordStore records_{api_};
  JobObserver observer_{api_, {&registry_, &records_, &pods_, &nodes_}, &queue_, {}};
  RecordWriter record_{&records_, &observer_, &backoff_, &events_, &queue_};
  DecisionApplier applier_{api_, &pods_, {&writer_, &record_, &registry_, &backoff_, &events_}};
  planner::Snapshot snapshot_;
  planner::Decision decision_;
};

TEST_F(DecisionApplierTest, ADrainIsWrittenOnThePodWithItsTime) {
  decision_.drains = {{"digits-worker-0", uid(), "ScaledDown"}};
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_EQ(Annotations()[api::kDrainAnnotation], "ScaledDown");
  EXPECT_EQ(Annotations()[api::kDrainSinceAnnotation], "2026-01-31T12:00:00Z");
  EXPECT_THAT(EventReasons(), ElementsAre("Draining"));
}

TEST_F(DecisionApplierTest, AnnotationsOfAPodAreWrittenTogetherAndEmptyOnesRemoved) {
  decision_.annotations = {{"digits-worker-0", "a", "1"}, {"digits-worker-0", "b", "2"}};
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_EQ(Annotations(), Json({{"a", "1"}, {"b", "2"}}));
  decision_.annotations = {{"digits-worker-0", "a", ""}};
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_EQ(Annotations(), Json({{"b", "2"}}));
}

// Two hundred annotations and as many deletions, all of pods that exist.
class ManyPodsTest : public DecisionApplierTest {
 protected:
  static constexpr int kPods = 200;
  ManyPodsTest() {
    for (int i = 1; i <= kPods; ++i) {
      const Json pod = MakePod(i, {{"metadata", {{"finalizers", {"example.com/keeps"}}}}});
      const std::string name = MetaField(pod, "name"), uid = MetaField(pod, "uid");
      snapshot_.pods.push_back({.name = name, .uid = uid});
      decision_.annotations.push_back({name, "a", "1"});
      decision_.deletes.push_back({name, uid, "Suspended"});
    }
  }
  template <class Has>
  int Count(Has has) {
    int count = 0;
    for (int i = 1; i <= kPods; ++i) count += has(Pod(i)) ? 1 : 0;
    return count;
  }
  int CountAnnotated() {
    return Count([](const Json& pod) { return pod["metadata"].contains("annotations"); });
  }
  int CountDeleted() {
    return Count([](const Json& pod) { return !MetaField(pod, "deletionTimestamp").empty(); });
  }
};

TEST_F(ManyPodsTest, WhileSomebodyCountsTheSecondsALookWritesAFewAndComesBack) {
  queue_.AddFirst("default/another");
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_EQ(CountAnnotated(), 8);
  EXPECT_EQ(CountDeleted(), 8);
  EXPECT_EQ(queue_.size(), 2u) << "the job comes back for the rest";
}

TEST_F(ManyPodsTest, DrainsAndDeletionsThatAreOneActAreNotHeldBack) {
  decision_.annotations.clear();
  for (const planner::PodDelete& pod : decision_.deletes) {
    decision_.drains.push_back({pod.name, pod.uid, "Requested"});
  }
  decision_.deletes_are_one = true;
  queue_.AddFirst("default/another");
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_EQ(CountAnnotated(), kPods);
  EXPECT_EQ(CountDeleted(), kPods);
}

TEST_F(ManyPodsTest, WithoutHurryALookWritesAll) {
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_EQ(CountAnnotated(), kPods);
  EXPECT_EQ(CountDeleted(), kPods);
}

TEST_F(DecisionApplierTest, OfAViewHearsOnlyASidecarWhosePodSaysThatItHasRegistered) {
  const auto sink = Connect();
  decision_.notices = {{uid(), planner::ViewDecidedNotice{FirstView()}},
                       {uid(), planner::FinishNotice{"done"}}};
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_THAT(sink->sent, SizeIs(1)) << "the other notice needs nothing";
  ASSERT_TRUE(writer_.Annotate(job_, "digits-worker-0", uid(), {{api::kHttpAnnotation, "h:1"}}));
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_THAT(sink->sent, SizeIs(2));
}

TEST_F(DecisionApplierTest, TheFirstViewGoesIntoTheRecord) {
  decision_.first_view = FirstView();
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  const auto record = records_.Newest({"default", "digits", job_.uid});
  ASSERT_TRUE(record && *record);
  EXPECT_EQ(membership::EpochOf((*record)->view), decision_.first_view->epoch);
  EXPECT_EQ(queue_.size(), 1u) << "the sidecars are notified by the next look";
}

// The recovery changes the job's status first, so the status that this reconcile writes later is
// refused.
TEST_F(DecisionApplierTest, ARecoveryThatHasBegunIsToldOfAtOnceAndOnce) {
  snapshot_.view = FirstView();
  decision_.recover = 2;
  decision_.recover_event = {true, "QuorumLost", "too few of view 1.1 live", ""};
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_)) << "the record is at this lineage already";
  EXPECT_THAT(EventReasons(), ElementsAre("QuorumLost"));
}

TEST_F(DecisionApplierTest, ARecordThatIsRefusedWaitsAndPeopleHearOfIt) {
  api_->refused_verb = "create";
  decision_.first_view = FirstView();
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_)) << "the backoff brings it back";
  EXPECT_TRUE(backoff_.Waits(job_, Needed::kRecord));
  decision_.first_view = nullptr;
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_FALSE(backoff_.Waits(job_, Needed::kRecord)) << "nothing has to be written any more";
}

TEST_F(DecisionApplierTest, WhatCantBeDoneComesBack) {
  api_->refused_verb = "patch";
  decision_.annotations = {{"digits-worker-0", "a", "1"}};
  EXPECT_FALSE(applier_.Apply(snapshot_, decision_));
}

TEST_F(DecisionApplierTest, AJobThatWasChangedAMomentAgoIsNotDeleted) {
  ASSERT_TRUE(api_->Patch(kube::HorovodJobs(), "default", "digits",
                          {{"metadata", {{"annotations", {{"ttl", "longer"}}}}}}, {}));
  decision_.delete_job = true;
  EXPECT_FALSE(applier_.Apply(snapshot_, decision_)) << "it is looked at again";
  EXPECT_TRUE(api_->Get(kube::HorovodJobs(), "default", "digits"));
}

TEST_F(DecisionApplierTest, ADeletedJobIsGone) {
  decision_.delete_job = true;
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_));
  EXPECT_FALSE(api_->Get(kube::HorovodJobs(), "default", "digits"));
  EXPECT_TRUE(applier_.Apply(snapshot_, decision_)) << "once more does no harm";
}

}  // namespace
}  // namespace ringmaster::controllers
