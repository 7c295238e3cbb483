// Compares the search for the pods to take with its slow form, on many random small clusters.
#include <gtest/gtest.h>

#include <random>

#include "operator/scheduler/preemption.h"
#include "operator/scheduler/testing/slow_preemption.h"

namespace ringmaster::scheduler {
namespace {

constexpr Moment kNow = Moment(std::chrono::hours(1));
constexpr int kPriority = 4;  // of the job that waits

// Some nodes have a label, too few resources, or pods of jobs that don't train; some pods leave, in
// time or late, are unknown, or are on a node that is unknown.
class RandomCluster {
 public:
  explicit RandomCluster(unsigned seed) : random_(seed) {
    nodes_ = 1 + Random(6);
    for (int i = 0; i < nodes_; ++i) SetNode(i, 2 + Random(7));
    const int jobs = Random(7);
    for (int i = 0; i < jobs; ++i) AddJob("ns/job-" + std::to_string(i));
    for (int i = 0; i < nodes_; ++i) {
      if (Random(6) == 0) SetNode(i, 1);  // it may have more used than it has
    }
    MakeNeed();
  }

  PreemptionCase Case() const { return {&capacity_, need_, holdings_, before_, for_others_, kNow}; }
  std::set<std::string> SomeJobs() {
    std::set<std::string> jobs;
    for (const auto& [job, holding] : holdings_) {
      if (holding.priority < kPriority && Random(2) == 0) jobs.insert(job);
    }
    return jobs;
  }

 private:
  int Random(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  void SetNode(int i, int gpus) {
    const std::string zone = i % 2 == 0 ? "even" : "odd";
    capacity_.SetNode({{"metadata", {{"name", NodeName(i)}, {"labels", {{"zone", zone}}}}},
                       {"status",
                        {{"allocatable",
                          {{"nvidia.com/gpu", std::to_string(gpus)},
                           {"cpu", std::to_string(1 + i % 3)},
                           {"pods", "8"}}}}}});
  }
  static std::string NodeName(int i) { return "n" + std::to_string(i); }
  Json RandomPod(const std::string& name, int most_gpus) {
    const Json requests = {{"nvidia.com/gpu", std::to_string(Random(most_gpus + 1))},
                           {"cpu", std::to_string(100 * Random(6)) + "m"}};
    return {{"metadata", {{"namespace", "ns"}, {"name", name}}},
            {"spec", {{"containers", {{{"resources", {{"requests", requests}}}}}}}}};
  }

  void AddJob(const std::string& job) {
    Holding holding{.job = job, .priority = Random(6), .least = Random(4)};
    holding.since = kNow - std::chrono::minutes(Random(3));
    if (Random(3) == 0) holding.sizes = {1, 2, 4};
    const int pods = 1 + Random(6);
    for (int i = 0; i < pods; ++i) AddPod(job.substr(3) + "-" + std::to_string(i), &holding);
    if (Random(8) != 0) holdings_[job] = std::move(holding);
  }
  void AddPod(const std::string& name, Holding* holding) {
    Json pod = RandomPod(name, 3);
    pod["metadata"]["uid"] = name;
    pod["spec"]["nodeName"] = NodeName(Random(10) == 0 ? 99 : Random(nodes_));
    std::optional<Moment> leaves_by;
    if (Random(6) == 0) leaves_by = kNow - std::chrono::seconds(Random(3) * 50);
    if (Random(12) != 0) capacity_.SetPod(pod, holding->job, leaves_by);
    if (Random(8) != 0) holding->pods.push_back({name, name, Random(5) != 0});
    if (Random(6) == 0) before_.push_back({name, name, holding->job, Random(2) == 0});
    if (Random(8) == 0) for_others_.insert(name);
  }
  void MakeNeed() {
    need_.job = "ns/waits";
    need_.priority = kPriority;
    std::vector<Json> kinds;
    for (int i = 0; i < 2; ++i) kinds.push_back(RandomPod("", 4));
    if (Random(3) == 0) kinds[1]["spec"]["nodeSelector"] = {{"zone", "odd"}};
    const int pods = 1 + Random(6), mix = 1 + Random(2);
    for (int i = 0; i < pods; ++i) {
      Json pod = kinds[static_cast<std::size_t>(Random(mix))];
      pod["metadata"]["name"] = "waits-" + std::to_string(i);
      need_.pods.push_back(std::make_shared<const Json>(std::move(pod)));
      need_.shapes.push_back(capacity_.shapes().Of(*need_.pods.back()));
    }
  }

  std::mt19937 random_;
  int nodes_ = 0;
  Capacity capacity_;
  Need need_;
  Holdings holdings_;
  std::vector<TakenPod> before_;
  std::set<std::string> for_others_;
};

TEST(PreemptionSearchTest, TakesThePodsThatItsSlowFormTakes) {
  int enough = 0, too_few = 0, taking = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomCluster cluster(seed);
    const PreemptionCase what = cluster.Case();
    PreemptionSearch search(what);
    for (int i = 0; i < 3; ++i) {
      const std::set<std::string> whole = cluster.SomeJobs();
      const auto slow = slow::TakeWith(whole, what);
      ASSERT_EQ(search.Suffices(whole), slow.has_value());
      const auto quick = search.TakeWith(whole);
      ASSERT_EQ(quick.has_value(), slow.has_value());
      ++(slow ? enough : too_few);
      if (!slow) continue;
      ASSERT_EQ(quick->taken, slow->taken);
      ASSERT_EQ(quick->nodes, slow->nodes);
      ASSERT_EQ(quick->late_at, slow->late_at);
      taking += slow->taken.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(enough, 2000);
  EXPECT_GT(too_few, 2000);
  EXPECT_GT(taking, 1000) << "pods were taken";
}

}  // namespace
}  // namespace ringmaster::scheduler
