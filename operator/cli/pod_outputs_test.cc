#include "operator/cli/pod_outputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "common/sync/pause.h"
#include "operator/kube/errors.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::chrono::seconds kPatience{20};
constexpr std::chrono::milliseconds kBetween{100};

// One pod's log: some text is there, more follows, and then it ends or stays open.
class ApiWithALog : public local::InMemoryApi {
 public:
  ApiWithALog() : InMemoryApi(std::make_shared<local::Store>(local::StoreOptions{})) {}

  kube::Result<void> PodLog(const std::string&, const std::string& pod, const std::string&,
                            bool follow, const std::function<bool(std::string_view)>& on_text,
                            std::stop_token stop) override {
    if (pod == "endless") {
      on_text("half");
      while (!stop.stop_requested()) std::this_thread::yield();
      return {};
    }
    if (pod == "slow") {
      // Longer than a reader waits for the first of them.
      for (int i = 0; i < 30 && !stop.stop_requested(); ++i) {
        on_text(std::to_string(i) + "\n");
        sync::Pause(stop, kBetween);
      }
      return {};
    }
    if (pod == "cut") {
      on_text(++streams_ == 1 ? "one\ntw" : "one\ntwo\nthree\n");
      if (streams_ == 2) Report(pod, "terminated");
      return streams_ == 1 ? kube::Result<void>(tl::unexpected(kube::Unavailable("log", "cut")))
                           : kube::Result<void>();
    }
    if (pod == "stuck") {
      on_text("one\ntwo\n");
      return tl::unexpected(kube::Unavailable("log", "cut"));
    }
    if (pod == "ended" || pod == "replaced") {
      const bool first = ++streams_ == 1;
      on_text(first ? "one\ntw" : "one\ntwo\nthree\n");
      if (first && pod == "ended") Report(pod, "terminated");
      if (!first) return {};
      return tl::unexpected(kube::Unavailable("log", "cut"));
    }
    on_text("old 1\nold");
    if (follow) on_text(" 2\nnew\nlast");
    return {};
  }

  // A pod is replaced by another one of its name after it was asked about so often.
  kube::Result<kube::Json> Get(const kube::Resource& resource, const std::string& ns,
                               const std::string& name) override {
    auto got = InMemoryApi::Get(resource, ns, name);
    if (name == "replaced" && streams_ == 1 && --looks_ == 0) {
      EXPECT_TRUE(Delete(kube::Pods(), ns, name, {}));
      Report(name, "running");
    }
    return got;
  }
  void ReplaceAfter(int looks) { looks_ = looks; }
  int streams() const { return streams_; }

  // Makes the pod, or changes it: its container is in this state.
  void Report(const std::string& pod, const char* state) {
    kube::Json object = {{"metadata", {{"name", pod}, {"namespace", "default"}}},
                         {"spec", {{"containers", {{{"name", "worker"}, {"image", "any"}}}}}}};
    if (!Get(kube::Pods(), "default", pod)) (void)Create(kube::Pods(), "default", object);
    object = Get(kube::Pods(), "default", pod).value();
    object["status"]["containerStatuses"] = {
        {{"name", "worker"}, {"state", {{state, kube::Json::object()}}}}};
    EXPECT_TRUE(Update(kube::Pods(), "default", object, "status"));
  }

 private:
  std::atomic<int> streams_ = 0;  // of a pod whose log is cut
  std::atomic<int> looks_ = 0;
};

class PodOutputsTest : public testing::Test {
 protected:
  std::vector<std::string> Lines() {
    const sync::MutexLock lock(&mu_);
    return lines_;
  }

  sync::Mutex mu_;
  std::vector<std::string> lines_ GUARDED_BY(mu_);
  const std::shared_ptr<ApiWithALog> api_ = std::make_shared<ApiWithALog>();
  PodOutputs outputs_{api_,
                      [this](const std::string& ns, const std::string& pod, std::string line) {
                        const sync::MutexLock lock(&mu_);
                        lines_.push_back(ns + "/" + pod + ": " + line);
                      }};
};

TEST_F(PodOutputsTest, TellsWholeLinesFromTheBeginningToTheEnd) {
  EXPECT_TRUE(outputs_.Follow("ns", "p", "uid"));
  EXPECT_FALSE(outputs_.Follow("ns", "p", "uid"));
  outputs_.Finish(kPatience, kPatience);
  EXPECT_THAT(Lines(), ElementsAre("ns/p: old 1", "ns/p: old 2", "ns/p: new", "ns/p: last"));
}

TEST_F(PodOutputsTest, DoesNotWaitForALogThatGoesOn) {
  outputs_.Follow("ns", "endless", "uid");
  EXPECT_THAT(Lines(), IsEmpty());
  outputs_.Finish({}, {});
  EXPECT_THAT(Lines(), ElementsAre("ns/endless: half"));
}

TEST_F(PodOutputsTest, AStreamThatIsCutIsOpenedAgainWhileTheContainerRuns) {
  api_->Report("cut", "running");
  const auto pod = api_->Get(kube::Pods(), "default", "cut");
  ASSERT_TRUE(pod);
  outputs_.Follow("default", "cut", pod->at("metadata").at("uid"));
  outputs_.Finish(kPatience, kPatience);
  EXPECT_THAT(Lines(), ElementsAre("default/cut: one", "default/cut: two", "default/cut: three"));
}

// A server cuts a stream that takes nothing for long, and the container has ended meanwhile.
TEST_F(PodOutputsTest, ALogThatIsCutAfterItsContainerHasEndedIsReadToItsEnd) {
  api_->Report("ended", "running");
  const auto pod = api_->Get(kube::Pods(), "default", "ended");
  ASSERT_TRUE(pod);
  outputs_.Follow("default", "ended", pod->at("metadata").at("uid"));
  outputs_.Finish(kPatience, kPatience);
  EXPECT_THAT(Lines(),
              ElementsAre("default/ended: one", "default/ended: two", "default/ended: three"));
  EXPECT_THAT(outputs_.TakeCut(), IsEmpty());
}

TEST_F(PodOutputsTest, TheLogOfAnotherPodOfTheNameIsNotTakenForTheRestAndTheCutIsTold) {
  api_->Report("replaced", "running");
  const auto pod = api_->Get(kube::Pods(), "default", "replaced");
  ASSERT_TRUE(pod);
  api_->ReplaceAfter(1);  // between the two looks
  outputs_.Follow("default", "replaced", pod->at("metadata").at("uid"));
  outputs_.Finish(kPatience, kPatience);
  EXPECT_THAT(Lines(), ElementsAre("default/replaced: one", "default/replaced: tw"));
  EXPECT_EQ(api_->streams(), 1);
  EXPECT_THAT(outputs_.TakeCut(), ElementsAre("replaced"));
}

TEST_F(PodOutputsTest, ALogThatIsCutAtTheSamePlaceAgainAndAgainIsNotWaitedForForEver) {
  api_->Report("stuck", "running");
  outputs_.Follow("default", "stuck", "");
  outputs_.Finish(kPatience, kBetween * 15);
  EXPECT_THAT(Lines(), ElementsAre("default/stuck: one", "default/stuck: two"));
}

TEST_F(PodOutputsTest, NothingIsFollowedAfterTheEndAndGivingUpEndsTheWait) {
  outputs_.Follow("ns", "endless", "uid");
  outputs_.GiveUp();
  const auto begun = std::chrono::steady_clock::now();
  outputs_.Finish(kPatience, kPatience);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience);
  EXPECT_FALSE(outputs_.Follow("ns", "p", "uid"));
}

TEST_F(PodOutputsTest, WaitsForALogWhileItGrows) {
  outputs_.Follow("ns", "slow", "uid");
  outputs_.Finish(kBetween * 20, kPatience);
  EXPECT_THAT(Lines(), testing::SizeIs(30));
}

}  // namespace
}  // namespace ringmaster::cli
