#include "operator/controllers/jobs_by_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/labels.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;
using testing::ElementsAre;
using testing::IsEmpty;

Json Pod(const std::string& uid, const std::string& job, const std::string& node,
         const std::string& announced = "") {
  Json pod = {
      {"metadata",
       {{"name", uid}, {"namespace", "ns"}, {"uid", uid}, {"labels", {{api::kJobNameLabel, job}}}}},
      {"spec", {{"nodeName", node}}}};
  if (!announced.empty()) pod["metadata"]["annotations"] = {{api::kAnnouncedAnnotation, announced}};
  return pod;
}

TEST(JobsByNodeTest, AJobIsNamedOnceForEachNodeOnWhichItHasPods) {
  JobsByNode jobs;
  jobs.Set(Pod("p", "one", "a"));
  jobs.Set(Pod("q", "one", "a"));
  jobs.Set(Pod("r", "two", "a"));
  jobs.Set(Pod("s", "two", "b"));
  EXPECT_THAT(jobs.On("a"), ElementsAre("ns/one", "ns/two"));
  EXPECT_THAT(jobs.On("b"), ElementsAre("ns/two"));
  EXPECT_THAT(jobs.On("c"), IsEmpty());
  jobs.Remove(Pod("p", "one", "a"));
  EXPECT_THAT(jobs.On("a"), ElementsAre("ns/one", "ns/two")) << "it has another pod there";
  jobs.Remove(Pod("q", "one", "a"));
  EXPECT_THAT(jobs.On("a"), ElementsAre("ns/two"));
}

TEST(JobsByNodeTest, APodThatGetsItsNodeIsThereFromThenOn) {
  JobsByNode jobs;
  jobs.Set(Pod("p", "one", ""));
  EXPECT_THAT(jobs.On(""), IsEmpty());
  jobs.Set(Pod("p", "one", "a"));
  EXPECT_THAT(jobs.On("a"), ElementsAre("ns/one"));
}

TEST(JobsByNodeTest, NodesWhoseEndWasAnnouncedToAPodConcernItsJob) {
  JobsByNode jobs;
  jobs.Set(Pod("p", "one", "a", R"({"b": "NodeCordoned"})"));
  EXPECT_THAT(jobs.On("b"), ElementsAre("ns/one"));
  jobs.Set(Pod("p", "one", "a"));
  EXPECT_THAT(jobs.On("b"), IsEmpty());
  jobs.Set(Pod("p", "one", "a", "not what we have written"));
  EXPECT_THAT(jobs.On("a"), ElementsAre("ns/one"));
}

}  // namespace
}  // namespace ringmaster::controllers
