// Which jobs grow when there is room: those with the smallest share, weighed by priority.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/scheduler/admission.h"

namespace ringmaster::scheduler {
namespace {

using testing::ElementsAreArray;

constexpr Moment kNow = Moment(std::chrono::hours(1));
constexpr char kGpu[] = "nvidia.com/gpu";

Json Pod(const std::string& name, int gpus, int cpus) {
  return {
      {"metadata", {{"namespace", "ns"}, {"name", name}, {"uid", name}}},
      {"spec",
       {{"containers",
         {{{"resources",
            {{"requests", {{kGpu, std::to_string(gpus)}, {"cpu", std::to_string(cpus)}}}}}}}}}}};
}

struct Grows {
  int has;    // running pods
  int wants;  // additional pods
  int priority = 0;
  std::vector<int> sizes = {};  // useful numbers of additional pods; empty: any
  int gpus = 1, cpus = 0;       // of each pod
  GangState state = GangState::kRuns;
};

struct Case {
  std::string name;
  int gpus;                 // free
  std::vector<Grows> jobs;  // in the order of the line, if priorities are equal
  std::vector<int> gets;    // pods
  int cpus = 1000;          // of the node
};

class GrowthTable : public testing::TestWithParam<Case> {
 protected:
  void Node(const Case& c) {
    int used = c.gpus;
    for (const Grows& job : c.jobs) used += job.has * job.gpus;
    admission_.capacity().SetNode(
        {{"metadata", {{"name", "a"}}},
         {"status",
          {{"allocatable",
            {{kGpu, std::to_string(used)}, {"cpu", std::to_string(c.cpus)}, {"pods", "1000"}}}}}});
  }
  static std::string Name(std::size_t job, int pod) {
    return "j" + std::to_string(job) + "-" + std::to_string(pod);
  }
  AdmissionRequest Request(std::size_t at, const Grows& job) {
    AdmissionRequest request{.job = "ns/j" + std::to_string(at),
                             .state = job.state,
                             .priority = job.priority,
                             .since = kNow + std::chrono::seconds(at),
                             .sizes = job.sizes};
    for (int i = job.has; i < job.has + job.wants; ++i) {
      request.pods.push_back(std::make_shared<const Json>(Pod(Name(at, i), job.gpus, job.cpus)));
      if (job.sizes.empty()) request.sizes.push_back(i - job.has + 1);
    }
    return request;
  }
  Admission admission_;
};

TEST_P(GrowthTable, WhoHasLeastGrowsFirst) {
  const Case& c = GetParam();
  Node(c);
  for (std::size_t at = 0; at < c.jobs.size(); ++at) {
    for (int i = 0; i < c.jobs[at].has; ++i) {
      Json pod = Pod(Name(at, i), c.jobs[at].gpus, c.jobs[at].cpus);
      pod["spec"]["nodeName"] = "a";
      admission_.capacity().SetPod(pod, "ns/j" + std::to_string(at));
    }
  }
  for (std::size_t at = 0; at < c.jobs.size(); ++at) {
    admission_.Ask(Request(at, c.jobs[at]), {}, false);
  }
  admission_.Pass(kNow);
  std::vector<int> gets;
  for (std::size_t at = 0; at < c.jobs.size(); ++at) {
    gets.push_back(admission_.Ask(Request(at, c.jobs[at]), {}, false).fit);
  }
  EXPECT_THAT(gets, ElementsAreArray(c.gets));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GrowthTable,
    testing::Values(
        Case{"EqualsGetEquallyMuch", 6, {{1, 9}, {1, 9}, {1, 9}}, {2, 2, 2}},
        Case{"WhoHasLessCatchesUpOnceEverybodyHasGotOne", 4, {{5, 9}, {1, 9}}, {1, 3}},
        Case{"WhatIsLeftOverGoesByTheLine", 3, {{1, 9}, {1, 9}}, {2, 1}},
        Case{"NobodyGetsMoreThanHeWants", 6, {{1, 1}, {1, 9}}, {1, 5}},
        Case{"ThePriorityAboveHasTwiceAsMuch", 4, {{1, 9, 0}, {1, 9, 1000}}, {1, 3}},
        Case{"TheNextOneThreeTimes", 9, {{1, 99, 7}, {1, 99, 8}, {1, 99, 2000000}}, {1, 3, 5}},
        Case{"OfOneThatIsFreeTooTheNeediest", 1, {{4, 9}, {1, 9}}, {0, 1}},
        Case{"AlsoWhereThatIsTheLessImportant", 1, {{4, 9, 5}, {1, 9, 0}}, {0, 1}},
        Case{"WholeSizesOnly", 5, {{2, 6, 0, {2, 6}}, {2, 6}}, {2, 3}},
        Case{"WhoseNextSizeDoesNotFitLeavesItToOthers", 3, {{2, 4, 0, {4}}, {3, 9}}, {0, 3}},
        Case{"LargePodsCountAsWhatTheyTake", 8, {{1, 9, 0, {}, 4}, {1, 9}}, {1, 4}},
        Case{"TheScarceResourceOfEachCounts",
             8,
             {{1, 9, 0, {}, 1, 500}, {1, 9, 0, {}, 1, 1}},
             {0, 8},
             1000},
        Case{"WhoStartsComesBeforeWhoGrows",
             4,
             {{1, 9}, {0, 4, 0, {3, 4}, 1, 0, GangState::kWaits}},
             {1, 3}},
        Case{"AlsoWithTheOnlyPodThatIsFree",
             1,
             {{1, 9}, {0, 4, 0, {}, 1, 0, GangState::kWaits}},
             {0, 1}},
        Case{"AnImportantJobThatLacksAPodComesBeforeALessImportantStart",
             3,
             {{4, 1, 5}, {0, 3, 0, {3}, 1, 0, GangState::kWaits}},
             {1, 0}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringmaster::scheduler
