#include "operator/inspection/timeline_gathering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sync/mutex.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::inspection {
namespace {

using kube::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

Json Pod(const std::string& name, const char* phase, const std::string& address) {
  return {{"metadata", {{"name", name}, {"annotations", {{"ringmaster.dev/http", address}}}}},
          {"status", {{"phase", phase}, {"podIP", "127.0.0.1"}}}};
}

const Json kJob = {{"metadata", {{"name", "digits"}, {"namespace", "default"}}}};

// An API server that reaches pods: p0 reports its worker, p1 a missing one, p2 nonsense.
class ClusterApi : public local::InMemoryApi {
 public:
  ClusterApi() : InMemoryApi(std::make_shared<local::Store>(local::StoreOptions{})) {}

  kube::Result<std::string> PodProxy(const std::string&, const std::string& pod,
                                     const kube::PodProxyRequest& request) override {
    {
      const sync::MutexLock lock(&mu_);
      paths_.push_back(request.path);
    }
    if (forbidden)
      return tl::unexpected(kube::Error{kube::ErrorCode::kForbidden, 403, "Forbidden", ""});
    if (pod == "p2") return "nonsense";
    if (pod == "p4")
      return tl::unexpected(
          kube::Error{kube::ErrorCode::kUnavailable, 503, "", "GET p4/timeline: no route"});
    if (pod == "slow" && request.path.find("bytes=65536") == std::string::npos)
      return tl::unexpected(
          kube::Error{kube::ErrorCode::kUnavailable, 0, "", "too much for its link"});
    Json about = {{"pod", {{"name", pod}}}, {"workers", Json::array()}, {"missing", Json::array()}};
    if (pod == "p0") about["workers"].push_back({{"slot", 0}, {"rank", 0}, {"process", 0}});
    if (pod == "p1")
      about["missing"].push_back({{"slot", 3}, {"rank", 1}, {"why", "it did not answer in time"}});
    return Json{{"ringmaster", about}, {"traceEvents", Json::array()}}.dump();
  }
  std::vector<std::string> paths() {
    const sync::MutexLock lock(&mu_);
    return paths_;
  }
  bool forbidden = false;

 private:
  sync::Mutex mu_;
  std::vector<std::string> paths_ GUARDED_BY(mu_);
};

// No server listens on that port.
const std::string kAddress = "127.0.0.1:1";

TEST(TimelineGatheringTest, AllPodsAreAskedAndWhoTellsNothingIsNamed) {
  const auto api = std::make_shared<ClusterApi>();
  const auto gathered =
      GatherTimelines({api, "", "default"}, kJob,
                      {Pod("p0", "Running", kAddress), Pod("p1", "Running", kAddress),
                       Pod("p2", "Running", kAddress), Pod("p4", "Running", kAddress),
                       Pod("new", "Pending", ""), Pod("over", "Succeeded", kAddress)},
                      {.seconds = 5, .tensors = false});
  EXPECT_EQ(gathered.pods.size(), 2u);
  EXPECT_THAT(gathered.missing, ElementsAre(HasSubstr("p2: its sidecar gave no timeline"),
                                            "p4: its sidecar gave no timeline (through the API "
                                            "server: GET p4/timeline: no route)",
                                            "new: no sidecar can be asked there yet",
                                            "p1/3 (rank 1): it did not answer in time"));
  const std::string path = "/timeline?seconds=5&tensors=0&bytes=8388608";
  const std::string little = "/timeline?seconds=5&tensors=0&bytes=65536";
  EXPECT_THAT(api->paths(), UnorderedElementsAre(path, path, path, path, little, little));
}

TEST(TimelineGatheringTest, APodBehindASlowLinkTellsTheNewestLittle) {
  const auto api = std::make_shared<ClusterApi>();
  const auto gathered =
      GatherTimelines({api, "", "default"}, kJob,
                      {Pod("slow", "Running", kAddress), Pod("p0", "Running", kAddress)}, {});
  EXPECT_EQ(gathered.pods.size(), 2u);
  EXPECT_THAT(gathered.missing, ElementsAre());
}

TEST(TimelineGatheringTest, OfManyPodsEachTellsLess) {
  const auto api = std::make_shared<ClusterApi>();
  std::vector<Json> pods;
  for (int i = 0; i < 64; ++i)
    pods.push_back(Pod("of-many-" + std::to_string(i), "Running", kAddress));
  (void)GatherTimelines({api, "", "default"}, kJob, pods, {});
  ASSERT_EQ(api->paths().size(), 64u);
  EXPECT_THAT(api->paths()[0], HasSubstr("bytes=1048576"));
}

TEST(TimelineGatheringTest, WhereTheProxyIsForbiddenPodsAreAskedStraight) {
  const auto api = std::make_shared<ClusterApi>();
  api->forbidden = true;
  const auto gathered =
      GatherTimelines({api, "", "default"}, kJob, {Pod("p0", "Running", kAddress)}, {});
  EXPECT_TRUE(gathered.pods.empty());
  EXPECT_THAT(gathered.missing, ElementsAre(HasSubstr("p0: its sidecar gave no timeline")));
}

TEST(TimelineGatheringTest, StraightOnlyPodsThatAreWhereTheySayAreAsked) {
  const auto gathered = GatherTimelinesStraight({Pod("p0", "Running", "10.0.0.9:1")}, "token", {});
  EXPECT_TRUE(gathered.pods.empty());
  EXPECT_THAT(gathered.missing, ElementsAre("p0: no sidecar can be asked there yet"));
}

}  // namespace
}  // namespace ringmaster::inspection
