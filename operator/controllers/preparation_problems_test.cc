// Pods that a kubelet can't prepare: what their events say, and how often the events are listed.
#include "operator/controllers/preparation_problems.h"

#include <fmt/format.h>

#include "operator/controllers/testing/controller_fixture.h"
#include "operator/kube/testing/wrapped_api.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMissing[] = "MountVolume.SetUp failed for volume \"v\" : configmap \"c\" not found";
constexpr char kSummary[] = "Unable to attach or mount volumes: unmounted volumes=[v]: timed out";

// Records whose events were listed, and fails if the test says so.
class AskedApi : public kube::testing::WrappedApi {
 public:
  using WrappedApi::WrappedApi;
  std::vector<std::string> asked;
  bool fails = false;
  std::optional<kube::List> answer;  // returned instead of the server's answer

  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    asked.push_back(options.field_selector);
    if (fails) return tl::unexpected(kube::Error{.code = kube::ErrorCode::kUnavailable});
    return answer ? *answer : WrappedApi::ListAll(resource, ns, options);
  }
};

// An event as a kubelet's recorder writes it.
Json Event(const std::string& ns, const std::string& name, const std::string& uid,
           const std::string& reason, const std::string& note, const std::string& time) {
  return {{"metadata", {{"name", name}}},
          {"regarding", {{"kind", "Pod"}, {"name", "p"}, {"namespace", ns}, {"uid", uid}}},
          {"eventTime", time},
          {"reportingController", "kubelet"},
          {"reportingInstance", "gpu-a"},
          {"action", "Mounting"},
          {"type", "Warning"},
          {"reason", reason},
          {"note", note}};
}

class PreparationProblemsTest : public local::testing::OnEveryServer {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnEveryServer::SetUp());
    asked_ = std::make_shared<AskedApi>(api_);
    problems_ = std::make_unique<PreparationProblems>(asked_, seconds(20));
  }
  // Creates an event at 12:00 and `second` seconds.
  void Happens(const std::string& uid, const std::string& reason, const std::string& note,
               int second) {
    const std::string time = fmt::format("2026-01-31T12:00:{:02}.000000Z", second);
    const auto made = api_->Create(
        kube::Events(), ns_, Event(ns_, "e" + std::to_string(events_++), uid, reason, note, time));
    ASSERT_TRUE(made) << made.error().message;
  }
  void AddPod(const std::string& uid) {
    planner::PodFacts pod;
    pod.name = "pod-" + uid;
    pod.uid = uid;
    pod.accepted = pod.scheduled = pod.preparing = true;
    pods_.push_back(pod);
  }
  // The facts at this time after the first call.
  std::vector<planner::PodFacts> After(std::chrono::milliseconds time) {
    std::vector<planner::PodFacts> pods = pods_;
    asked_->asked.clear();
    again_ = problems_->Explain("ns/digits", ns_, &pods, begin_ + time);
    return pods;
  }
  // The facts about a single pod at the first call.
  planner::Unstartable Found() {
    AddPod("u");
    After(seconds(0));
    return After(seconds(20))[0].unstartable;
  }

  std::shared_ptr<AskedApi> asked_;
  std::unique_ptr<PreparationProblems> problems_;
  std::vector<planner::PodFacts> pods_;
  std::optional<std::chrono::milliseconds> again_;  // result of the newest call
  const PreparationProblems::Clock::time_point begin_ = PreparationProblems::Clock::now();
  int events_ = 0;
};

TEST_P(PreparationProblemsTest, OnlyAPodThatWaitsLongerThanMostIsAskedAboutAndOnlyIt) {
  Happens("u", "FailedMount", kMissing, 0);
  Happens("another", "FailedMount", "of another pod", 1);
  AddPod("u");
  EXPECT_FALSE(After(seconds(0))[0].unstartable);
  EXPECT_EQ(again_, seconds(20));
  EXPECT_FALSE(After(seconds(19))[0].unstartable);
  EXPECT_EQ(again_, seconds(1));
  EXPECT_THAT(asked_->asked, IsEmpty());
  const planner::Unstartable found = After(seconds(20))[0].unstartable;
  EXPECT_THAT(asked_->asked, ElementsAre("regarding.uid=u"));
  EXPECT_EQ(found.reason, "VolumeNotMounted");
  EXPECT_EQ(found.what, "a volume can't be mounted");
  EXPECT_EQ(found.message, kMissing);
}

TEST_P(PreparationProblemsTest, LooksComeEverMoreRarelyAndWhatWasFoundStays) {
  Happens("u", "FailedMount", kMissing, 0);
  AddPod("u");
  After(seconds(0));
  int at = 0;
  for (const int pause : {20, 40, 80, 160, 300, 300}) {
    EXPECT_EQ(again_, seconds(pause));
    After(seconds(at + pause - 1));
    EXPECT_THAT(asked_->asked, IsEmpty()) << pause;
    at += pause;
    EXPECT_EQ(After(seconds(at))[0].unstartable.message, kMissing);
    EXPECT_EQ(asked_->asked.size(), 1u) << pause;
  }
  asked_->fails = true;
  EXPECT_EQ(After(seconds(at + 300))[0].unstartable.message, kMissing);
  EXPECT_EQ(again_, minutes(5));
}

TEST_P(PreparationProblemsTest, AThousandPodsThatWaitAreAFewCalls) {
  for (int i = 0; i < 1000; ++i) AddPod("u" + std::to_string(i));
  After(seconds(0));
  After(seconds(20));
  EXPECT_THAT(asked_->asked,
              ElementsAre("regarding.uid=u0", "regarding.uid=u1", "regarding.uid=u2"));
  // These pods continue, so the others count now.
  for (int i = 0; i < 3; ++i) pods_[i].preparing = false;
  After(seconds(21));
  EXPECT_EQ(again_, seconds(20));
  After(seconds(41));
  EXPECT_THAT(asked_->asked,
              ElementsAre("regarding.uid=u3", "regarding.uid=u4", "regarding.uid=u5"));
}

TEST_P(PreparationProblemsTest, TheNextLookIsForWhoHasWaitedLongest) {
  AddPod("first");
  After(seconds(0));
  AddPod("second");
  After(seconds(15));
  EXPECT_EQ(again_, seconds(5));
  After(seconds(20));
  EXPECT_THAT(asked_->asked, ElementsAre("regarding.uid=first"));
  EXPECT_EQ(again_, seconds(15));
}

TEST_P(PreparationProblemsTest, NobodyAsksAboutPodsThatAreNotPrepared) {
  for (const char* uid : {"running", "deleting", "draining", "dead"}) AddPod(uid);
  pods_[0].preparing = false;
  pods_[1].deleting = true;
  pods_[2].drain_reason = "ScaledDown";
  pods_[3].proven_dead = true;
  After(seconds(0));
  EXPECT_EQ(again_, std::nullopt);
  After(minutes(1));
  EXPECT_THAT(asked_->asked, IsEmpty());
}

TEST_P(PreparationProblemsTest, APodThatIsPreparedAnewBeginsAnew) {
  AddPod("u");
  After(seconds(0));
  pods_[0].preparing = false;
  After(seconds(10));
  pods_[0].preparing = true;
  After(seconds(20));
  EXPECT_EQ(again_, seconds(20));
  problems_->Forget("ns/digits");
  After(seconds(30));
  EXPECT_EQ(again_, seconds(20));
}

TEST_P(PreparationProblemsTest, TheNewestCauseIsTold) {
  Happens("u", "FailedMount", kMissing, 1);
  Happens("u", "FailedAttachVolume", "no such disk", 3);
  Happens("u", "FailedMount", "older", 2);
  Happens("u", "Scheduled", "Successfully assigned", 4);
  const planner::Unstartable found = Found();
  EXPECT_EQ(found.reason, "VolumeNotMounted");
  EXPECT_EQ(found.what, "a volume can't be attached to the node");
  EXPECT_EQ(found.message, "no such disk");
}

TEST_P(PreparationProblemsTest, ThatAllWasWaitedForSaysLessThanWhatForButMoreThanNothing) {
  Happens("u", "FailedMount", kSummary, 9);
  EXPECT_EQ(Found().message, kSummary);
  Happens("u", "FailedMount", kMissing, 1);
  EXPECT_EQ(After(minutes(1))[0].unstartable.message, kMissing);
}

TEST_P(PreparationProblemsTest, AnImageThatIsPulledMeansThatTheVolumesAreThere) {
  for (const char* reason : {"Pulling", "Pulled"}) {
    const std::string uid = reason;
    Happens(uid, "FailedMount", kMissing, 2);
    Happens(uid, reason, "image r/i:7", 2);
    Happens(uid, "FailedMount", kSummary, 3);
    AddPod(uid);
  }
  Happens("again", "Pulled", "before the node booted", 1);
  Happens("again", "FailedMount", kMissing, 2);
  AddPod("again");
  After(seconds(0));
  const auto pods = After(seconds(20));
  EXPECT_FALSE(pods[0].unstartable);
  EXPECT_FALSE(pods[1].unstartable);
  EXPECT_EQ(pods[2].unstartable.message, kMissing);
}

TEST_P(PreparationProblemsTest, ASandboxThatCantBeMadeIsTold) {
  Happens("u", "FailedCreatePodSandBox", "no network plugin", 1);
  const planner::Unstartable found = Found();
  EXPECT_EQ(found.reason, "ContainerNotStarted");
  EXPECT_EQ(found.what, "its sandbox can't be made");
}

TEST_P(PreparationProblemsTest, ABlockVolumeIsAVolume) {
  Happens("u", "FailedMapVolume", "no such device", 1);
  EXPECT_EQ(Found().reason, "VolumeNotMounted");
}

TEST_P(PreparationProblemsTest, ASeriesIsAsNewAsItsLastEvent) {
  Happens("u", "FailedMount", kMissing, 1);
  const auto series = api_->Patch(
      kube::Events(), ns_, "e0",
      {{"series", {{"count", 2}, {"lastObservedTime", "2026-01-31T12:00:30.000000Z"}}}}, {});
  ASSERT_TRUE(series) << series.error().message;
  Happens("u", "FailedAttachVolume", "no such disk", 3);
  EXPECT_EQ(Found().message, kMissing);
}

// Kubelets write events of the core API: the newer API shows their time in another field.
TEST_P(PreparationProblemsTest, TheTimeOfACoreEventCounts) {
  asked_->answer = kube::List{};
  for (const auto& [note, second] :
       {std::pair("older", "08"), std::pair("newer", "09"), std::pair("oldest", "07")}) {
    asked_->answer->items.push_back(
        {{"reason", "FailedMount"},
         {"eventTime", nullptr},
         {"deprecatedLastTimestamp", std::string("2026-01-31T12:00:") + second + "Z"},
         {"note", note}});
  }
  EXPECT_EQ(Found().message, "newer");
}

RM_ON_EVERY_SERVER(PreparationProblemsTest);

class UnpreparedPodsTest : public testing::ControllerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ControllerTest::SetUp());
    options_.preparation_patience = std::chrono::milliseconds(10);
    ASSERT_NO_FATAL_FAILURE(StartController());
  }
  void PatchStatus(const std::string& pod, const Json& status) {
    const auto patched =
        api_->Patch(kube::Pods(), ns_, pod, {{"status", status}}, {.subresource = "status"});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  bool StartedIs(bool value, const std::string& reason) {
    const auto status = Status();
    const api::Condition* started = status.Find("Started");
    return started != nullptr && started->status == value && started->reason == reason;
  }
};

TEST_P(UnpreparedPodsTest, AVolumeThatIsMissingIsAConditionUntilAContainerBegins) {
  Apply(2);
  ASSERT_TRUE(Eventually([&] { return Pods().size() == 2; }));
  const auto pod = api_->Get(kube::Pods(), ns_, "digits-worker-1");
  ASSERT_TRUE(pod) << pod.error().message;
  const auto event = api_->Create(kube::Events(), ns_,
                                  Event(ns_, "mount", runtime::MetaField(*pod, "uid"),
                                        "FailedMount", kMissing, "2026-01-31T12:00:00.000000Z"));
  ASSERT_TRUE(event) << event.error().message;
  PatchStatus("digits-worker-1", {{"phase", "Pending"}, {"startTime", "2026-01-31T12:00:00Z"}});
  ASSERT_TRUE(Eventually([&] { return StartedIs(false, "VolumeNotMounted"); }));
  EXPECT_THAT(Status().Find("Started")->message,
              HasSubstr("digits-worker-1: a volume can't be mounted: MountVolume.SetUp failed for "
                        "volume \"v\" : configmap \"c\" not found"));
  EXPECT_TRUE(Eventually([&] { return Events("VolumeNotMounted").size() == 1; }));
  PatchStatus("digits-worker-1",
              {{"initContainerStatuses",
                {{{"name", "ringmaster-install"},
                  {"image", "i"},
                  {"imageID", ""},
                  {"ready", false},
                  {"restartCount", 0},
                  {"state", {{"running", {{"startedAt", "2026-01-31T12:00:00Z"}}}}}}}}});
  EXPECT_TRUE(Eventually([&] { return StartedIs(true, "AllStarted"); }));
}

RM_ON_EVERY_SERVER(UnpreparedPodsTest);

}  // namespace
}  // namespace ringmaster::controllers
