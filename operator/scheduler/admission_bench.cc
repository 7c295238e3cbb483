// Measures how long one pass over waiting jobs takes: the admission lock is held for as long.
//
// usage: admission_bench [NODES [SHAPES [PENDING]]]
// A thousand jobs of ten pods that don't fit wait for NODES nodes; no more than SHAPES of them are
// alike in what they request; PENDING pods of others wait for the scheduler and fit nowhere. Then a
// job of 300 pods waits that is more important than a thousand jobs that hold the GPUs, of ten pods
// each, and needs as many of these jobs as have 300 GPUs. At last sixteen important jobs wait whose
// pods are too large for any node.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "operator/scheduler/admission.h"

namespace ringmaster::scheduler {
namespace {

constexpr int kJobs = 1000, kPods = 10, kGpuEvery = 200;

Json Pod(const std::string& name, int millicpus, const std::string& uid = "", int gpus = 1) {
  const Json requests = {{"cpu", std::to_string(millicpus) + "m"},
                         {"memory", "64Mi"},
                         {"nvidia.com/gpu", std::to_string(gpus)}};
  return {{"metadata", {{"namespace", "ns"}, {"name", name}, {"uid", uid}}},
          {"spec",
           {{"nodeSelector", {{"pool", "gpu"}}},
            {"containers", {{{"name", "worker"}, {"resources", {{"requests", requests}}}}}}}}};
}

void MakeNodes(int count, Capacity* capacity) {
  for (int i = 0; i < count; ++i) {
    capacity->SetNode(
        {{"metadata", {{"name", "n" + std::to_string(i)}, {"labels", {{"pool", "gpu"}}}}},
         {"status",
          {{"allocatable",
            {{"cpu", "64"},
             {"memory", "256Gi"},
             {"pods", "110"},
             {"nvidia.com/gpu", i % kGpuEvery == 0 ? "1" : "0"}}}}}});
  }
}

template <class F>
void Time(const char* what, F call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  std::printf("%s: %.2f ms\n", what, took.count());
}

void Run(int nodes, int shapes, int pending) {
  Admission admission;
  MakeNodes(nodes, &admission.capacity());
  for (int i = 0; i < pending; ++i) {
    const std::string name = "pending-" + std::to_string(i);
    admission.capacity().SetPod(Pod(name, 1 + i % shapes, name));
  }
  for (int j = 0; j < kJobs; ++j) {
    const std::string name = "job-" + std::to_string(j);
    AdmissionRequest request{.job = "ns/" + name, .sizes = {kPods}};
    for (int p = 0; p < kPods; ++p) {
      request.pods.push_back(
          std::make_shared<const Json>(Pod(name + "-" + std::to_string(p), 100 + j % shapes)));
    }
    admission.Ask(std::move(request), {});
  }
  for (const int hours : {0, 0, 10, 10}) {  // after 10 hours jobs get reservations
    Json pod = Pod("runs", 10, "runs");
    pod["spec"]["nodeName"] = "n1";
    admission.capacity().SetPod(pod, "ns/runs");
    admission.capacity().RemovePod("runs");  // something has become free
    Time("a pass", [&] { admission.Pass(Moment(std::chrono::hours(hours))); });
  }
}

// A thousand less important jobs have a node each, whose GPUs they use up.
void HoldAll(Admission* admission) {
  for (int j = 0; j < kJobs; ++j) {
    const std::string name = "low-" + std::to_string(j);
    admission->capacity().SetNode(
        {{"metadata", {{"name", name}, {"labels", {{"pool", "gpu"}}}}},
         {"status",
          {{"allocatable",
            {{"cpu", "64"}, {"memory", "256Gi"}, {"pods", "110"}, {"nvidia.com/gpu", "10"}}}}}});
    Holding holding{.job = "ns/" + name, .least = kPods, .whole = true};
    for (int p = 0; p < kPods; ++p) {
      const std::string uid = name + "-" + std::to_string(p);
      Json pod = Pod(uid, 100, uid);
      pod["spec"]["nodeName"] = name;
      admission->capacity().SetPod(pod, holding.job);
      holding.pods.push_back({uid, uid, true});
    }
    admission->SetHolding(std::move(holding));
  }
}

void RunWithHoldings(const char* what, int takers, int pods, int gpus) {
  Admission admission;
  HoldAll(&admission);
  for (int t = 0; t < takers; ++t) {
    const std::string name = "high-" + std::to_string(t);
    AdmissionRequest request{.job = "ns/" + name, .priority = 5, .preempts = true, .sizes = {pods}};
    for (int p = 0; p < pods; ++p) {
      request.pods.push_back(
          std::make_shared<const Json>(Pod(name + "-" + std::to_string(p), 100, "", gpus)));
    }
    admission.Ask(std::move(request), {});
  }
  Time(what, [&] { admission.Pass(Moment(std::chrono::hours(1))); });
}

}  // namespace
}  // namespace ringmaster::scheduler

int main(int argc, char** argv) {
  const auto number = [&](int at, int otherwise) {
    return argc > at ? std::atoi(argv[at]) : otherwise;
  };
  ringmaster::scheduler::Run(number(1, 1000), number(2, 1), number(3, 0));
  ringmaster::scheduler::RunWithHoldings("a pass that takes whole jobs", 1, 300, 1);
  ringmaster::scheduler::RunWithHoldings("a pass in which nobody can take enough", 16, 1, 11);
}
