// Which pods are given up: a case of a table, and its decision.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/scheduler/whole_jobs.h"

namespace ringmaster::scheduler::testing {

inline constexpr Moment kNow = Moment(std::chrono::hours(1));

inline Json Pod(const std::string& name, int gpus, const std::string& node = "") {
  Json pod = {{"metadata", {{"namespace", "ns"}, {"name", name}}},
              {"spec",
               {{"containers",
                 {{{"resources", {{"requests", {{"nvidia.com/gpu", std::to_string(gpus)}}}}}}}}}}};
  if (node.empty()) return pod;  // it has yet to be created
  pod["metadata"]["uid"] = name;
  pod["spec"]["nodeName"] = node;
  return pod;
}

inline Json Node(const std::string& name, int gpus) {
  return {
      {"metadata", {{"name", name}}},
      {"status", {{"allocatable", {{"nvidia.com/gpu", std::to_string(gpus)}, {"pods", "100"}}}}}};
}

// Training jobs and their pods; a pod's name begins with its job's: "low-2".
struct Trains {
  std::string job;
  int priority;
  int least;
  std::vector<std::pair<std::string, int>> pods;  // their nodes and numbers of GPUs
  std::vector<int> sizes = {};
  bool whole = false;  // it may be asked for all its pods
  int since = 0;       // minutes ago
};
inline constexpr int kNotBegun = -1;  // of Trains::since

inline const std::vector<std::string> kNo = {"-"};  // the job can't have enough

struct Case {
  std::string name;
  std::vector<std::pair<std::string, int>> nodes;  // and their GPUs
  std::vector<Trains> jobs;
  int pods, gpus;                         // of the job that waits, whose priority is 5
  std::vector<std::string> taken;         // pods; kNo: the job can't have enough
  std::vector<std::string> leaving = {};  // pods that are being terminated
  std::vector<TakenPod> before = {};
  std::set<std::string> for_others = {};
};
// `whole` has the jobs that give up all their pods.
struct Took {
  std::vector<std::string> pods;
  std::set<std::string> whole;  // jobs
  int searches = 0;
};

// Decides, and checks that the capacity is as before afterwards.
inline Took Decide(const Case& c) {
  Capacity capacity;
  for (const auto& [node, gpus] : c.nodes) capacity.SetNode(Node(node, gpus));
  Holdings holdings;
  for (const Trains& job : c.jobs) {
    Holding holding{
        "ns/" + job.job,
        job.priority,
        {},
        job.least,
        job.sizes,
        job.whole,
        job.since == kNotBegun ? Moment::max() : kNow - std::chrono::minutes(job.since)};
    for (std::size_t i = job.pods.size(); i-- > 0;) {
      const std::string name = job.job + "-" + std::to_string(i);
      const bool leaves = std::count(c.leaving.begin(), c.leaving.end(), name) != 0;
      capacity.SetPod(Pod(name, job.pods[i].second, job.pods[i].first), holding.job,
                      leaves ? std::optional(kNow) : std::nullopt);
      if (!leaves) holding.pods.push_back({name, name, true});
    }
    holdings[holding.job] = holding;
  }
  Need need{"ns/waits", 5, {}, {}};
  for (int i = 0; i < c.pods; ++i) {
    need.pods.push_back(std::make_shared<const Json>(Pod("waits-" + std::to_string(i), c.gpus)));
    need.shapes.push_back(capacity.shapes().Of(*need.pods.back()));
  }
  const std::uint64_t growth = capacity.growth();
  const auto used = capacity.nodes().used();

  const auto result = Preempt({&capacity, need, holdings, c.before, c.for_others, kNow});

  Took took{.pods = result ? std::vector<std::string>() : kNo};
  if (result) {
    took.searches = result->searches;
    for (const TakenPod& pod : result->taken) {
      took.pods.push_back(pod.name);
      if (pod.whole) took.whole.insert(pod.job);
    }
    EXPECT_EQ(result->nodes.size(), static_cast<std::size_t>(c.pods));
  }
  EXPECT_EQ(capacity.nodes().used(), used) << "a what-if undoes itself";
  EXPECT_EQ(capacity.held().size(), 0u);
  EXPECT_EQ(capacity.growth(), growth);
  return took;
}

}  // namespace ringmaster::scheduler::testing
