// Two or three jobs share the GPUs of a local cluster with real sidecars and workers, under an
// operator that counts the GPUs. The more important job takes pods that another can do without, or
// all of its pods, and that job gets them back afterwards; idle GPUs are shared fairly. The
// workers' own files show whether a step was lost.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "operator/api/testing/job_object.h"
#include "operator/app/testing/cluster_e2e.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using support::Until;
using testing::HasSubstr;
namespace fs = std::filesystem;

// What all workers of a job have written about a step: the hash of the state after it.
using Steps = std::map<int, std::set<std::string>>;

class PreemptionE2e : public ClusterE2e {
 protected:
  void SetUp() override {
    for (const char* sub : {"low", "mid", "high"}) fs::create_directory(dir_ / sub);
    StartCluster({.bin_dir = RM_BIN_DIR});
    SetGpus(4);
    operator_ = std::make_unique<RunningOperator>(RunningOperator::Options{
        .name = "op", .dir = dir_, .flags = OperatorFlags({"--gang-admission"})});
  }
  void TearDown() override {
    if (HasFailure()) TellWhatWas();
    operator_.reset();
    ClusterE2e::TearDown();
  }

  // `least` pods of the job have to train together; each has a GPU.
  void ApplyJob(const std::string& name, int replicas, int priority, int least = 2) {
    Json job = api::testing::JobObject(name, replicas, least,
                                       {WORKER_BINARY, (dir_ / name).string(), "--sleep-ms", "20"});
    job["spec"]["elasticPolicy"]["resizeIntervalSeconds"] = 0;
    Json& pod = job["spec"]["worker"]["template"]["spec"];
    pod["containers"][0]["resources"] = {{"limits", {{kGpu, "1"}}}};
    // The API server would set this from the priority class.
    pod["priority"] = priority;
    Apply(job);
  }
  void End(const std::string& name) { std::ofstream(dir_ / name / "stop").flush(); }

  api::Status Status(const std::string& name) { return api::StatusFromJson(StatusOf(name)); }
  bool Trains(const std::string& name, int pods) {
    return Until([&] {
      const api::Status status = Status(name);
      return status.state == "Running" && status.world_size == pods;
    });
  }
  bool WaitsForRoom(const std::string& name) {
    return Until([&] {
      const api::Status status = Status(name);
      const api::Condition* scheduled = status.Find("Scheduled");
      return scheduled != nullptr && scheduled->reason == "WaitingForRoom";
    });
  }
  // The message of the newest event; empty if there is none.
  std::string Event(const std::string& job, const std::string& reason) {
    std::string message;
    const auto events = api_->ListAll(kube::Events(), "default", {});
    if (!events) return message;
    for (const Json& event : events->items) {
      const Json& regarding =
          event.contains("regarding") ? event["regarding"] : event.value("involvedObject", Json());
      if (event.value("reason", "") != reason || regarding.value("name", "") != job) continue;
      message = event.value("note", event.value("message", ""));
    }
    return message;
  }

  Steps StepsOf(const std::string& name) const {
    Steps steps;
    for (const auto& entry : fs::directory_iterator(dir_ / name)) {
      std::ifstream file(entry.path());
      int before = 0;
      for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        int step = 0;
        std::string epoch, rank, size, time, hash;
        if (!(words >> step >> epoch >> rank >> size >> time >> hash) || hash.size() != 16) break;
        EXPECT_TRUE(before == 0 || step == before + 1) << entry.path() << ": " << line;
        before = step;
        steps[step].insert(hash);
      }
    }
    return steps;
  }
  std::string Log(const std::string& pod, const std::string& container) const {
    std::ifstream file(dir_ / "run" / "logs" / pod / (container + ".log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The newest step of each worker of the job.
  std::set<int> LastSteps(const std::string& name) const {
    std::set<int> last;
    for (const auto& entry : fs::directory_iterator(dir_ / name)) {
      std::ifstream file(entry.path());
      int step = 0;
      for (std::string line; std::getline(file, line);) std::istringstream(line) >> step;
      if (step != 0) last.insert(step);
    }
    return last;
  }
  bool StepsGoOn(const std::string& name) { return ClusterE2e::StepsGoOn(dir_ / name); }
  void ExpectNoStepLost(const std::string& name) {
    int expected = 1;
    for (const auto& [step, hashes] : StepsOf(name)) {
      EXPECT_EQ(step, expected++) << name;
      EXPECT_EQ(hashes.size(), 1u) << name << ": states differ after step " << step;
    }
    EXPECT_GT(expected, 10) << name;
    const api::Status status = Status(name);
    EXPECT_EQ(status.steps_lost, 0) << name;
    EXPECT_EQ(status.faults, 0) << name;
  }
  void TellWhatWas() {
    for (const char* job : {"low", "mid", "high"}) {
      std::cerr << "---- " << job << "\n" << api::StatusToJson(Status(job)).dump(1) << "\n";
    }
    if (operator_ != nullptr) std::cerr << operator_->Log();
  }

  std::unique_ptr<RunningOperator> operator_;
};

TEST_F(PreemptionE2e, AnImportantJobTakesWhatAnotherCanDoWithoutAndGivesItBackAtItsEnd) {
  ApplyJob("low", 4, 0);
  ASSERT_TRUE(Trains("low", 4));
  ASSERT_TRUE(StepsGoOn("low"));

  ApplyJob("high", 2, 100);
  ASSERT_TRUE(Trains("high", 2));
  EXPECT_TRUE(Trains("low", 2));
  EXPECT_TRUE(StepsGoOn("high"));
  EXPECT_TRUE(StepsGoOn("low"));
  const api::Status shrunk = Status("low");
  ASSERT_NE(shrunk.Find("Preempted"), nullptr);
  EXPECT_TRUE(shrunk.Is("Preempted"));
  EXPECT_THAT(shrunk.Find("Preempted")->message,
              HasSubstr("low-worker-3, low-worker-2 leave for job default/high of priority 100"));
  EXPECT_TRUE(Until([&] { return !Event("low", "Preempted").empty(); }));
  EXPECT_TRUE(Until([&] { return !Event("high", "Preempting").empty(); }));
  EXPECT_THAT(Event("high", "Preempting"),
              HasSubstr("2 pods of less important jobs leave for it: low-worker-3, low-worker-2 "
                        "of job default/low"));
  EXPECT_EQ(Event("low", "DrainGraceOver"), "") << "they left at a step boundary";

  End("high");
  ASSERT_TRUE(Until([&] { return Status("high").state == "Succeeded"; }));
  EXPECT_TRUE(Trains("low", 4)) << "what is idle makes it grow";
  EXPECT_TRUE(StepsGoOn("low"));
  EXPECT_TRUE(Until([&] { return !Status("low").Is("Preempted"); }));
  EXPECT_EQ(Status("low").Find("Preempted")->reason, "GrownBack");

  End("low");
  ASSERT_TRUE(Until([&] { return Status("low").state == "Succeeded"; }));
  for (const char* job : {"low", "high"}) ExpectNoStepLost(job);
}

TEST_F(PreemptionE2e, OfThreeJobsTheLeastImportantGivesAndTheOneBetweenTrainsOn) {
  SetGpus(6);
  ApplyJob("low", 4, 0, 1);
  ASSERT_TRUE(Trains("low", 4));
  ApplyJob("mid", 2, 50, 1);
  ASSERT_TRUE(Trains("mid", 2));
  const std::uint64_t epoch = Status("mid").epoch;
  ApplyJob("high", 2, 100);
  ASSERT_TRUE(Trains("high", 2));
  EXPECT_TRUE(Trains("low", 2));
  EXPECT_EQ(Status("mid").epoch, epoch) << "nothing was asked of it";
  EXPECT_EQ(Status("mid").Find("Preempted"), nullptr);
  for (const char* name : {"low", "mid", "high"}) EXPECT_TRUE(StepsGoOn(name)) << name;
  End("high");
  ASSERT_TRUE(Until([&] { return Status("high").state == "Succeeded"; }));
  EXPECT_TRUE(Trains("low", 4));
  for (const char* name : {"low", "mid"}) End(name);
  for (const char* name : {"low", "mid", "high"}) {
    ASSERT_TRUE(Until([&] { return Status(name).state == "Succeeded"; }));
    ExpectNoStepLost(name);
  }
}

TEST_F(PreemptionE2e, NoJobGivesUpWhatItNeedsNorAnythingForItsLike) {
  ApplyJob("low", 4, 0);
  ASSERT_TRUE(Trains("low", 4));
  ApplyJob("high", 2, 0);
  ASSERT_TRUE(WaitsForRoom("high"));
  EXPECT_EQ(Status("low").world_size, 4);
  EXPECT_EQ(Status("low").Find("Preempted"), nullptr);
  ASSERT_TRUE(api_->Delete(kube::HorovodJobs(), "default", "high", {}));
  ASSERT_TRUE(Until([&] { return !api_->Get(kube::HorovodJobs(), "default", "high"); }));

  ApplyJob("high", 3, 100);
  ASSERT_TRUE(Trains("high", 2)) << "two is what it needs, and the third is not worth a pod";
  EXPECT_TRUE(Trains("low", 2));
  EXPECT_TRUE(StepsGoOn("high"));
  for (const char* name : {"high", "low"}) End(name);
  for (const char* name : {"low", "high"}) {
    ASSERT_TRUE(Until([&] { return Status(name).state == "Succeeded"; }));
    ExpectNoStepLost(name);
  }
}

TEST_F(PreemptionE2e, WhatIsIdleMakesJobsOfOnePriorityGrowToTheSameSize) {
  SetGpus(1);
  ApplyJob("low", 5, 0, 1);
  ASSERT_TRUE(Trains("low", 1));
  SetGpus(2);
  ASSERT_TRUE(Trains("low", 2));
  ApplyJob("high", 5, 0, 1);
  ASSERT_TRUE(WaitsForRoom("high"));
  SetGpus(3);
  ASSERT_TRUE(Trains("high", 1)) << "who starts comes before who grows";
  SetGpus(8);
  EXPECT_TRUE(Trains("low", 4)) << "and not all five that it wants";
  EXPECT_TRUE(Trains("high", 4));
  for (const char* name : {"high", "low"}) End(name);
  for (const char* name : {"low", "high"}) {
    ASSERT_TRUE(Until([&] { return Status(name).state == "Succeeded"; }));
    ExpectNoStepLost(name);
  }
}

TEST_F(PreemptionE2e, AnImportantJobTakesAWholeOneWhichStartsAgainAtItsEnd) {
  ApplyJob("low", 3, 0, 3);
  ASSERT_TRUE(Trains("low", 3));
  ASSERT_TRUE(StepsGoOn("low"));

  ApplyJob("high", 2, 100);
  ASSERT_TRUE(Trains("high", 2));
  const api::Status waits = Status("low");
  ASSERT_NE(waits.Find("Preempted"), nullptr);
  EXPECT_TRUE(waits.Is("Preempted"));
  EXPECT_THAT(waits.Find("Preempted")->message,
              HasSubstr("all pods leave for job default/high of priority 100"));
  EXPECT_EQ(waits.state, "Pending");
  EXPECT_TRUE(StepsGoOn("high"));
  const Steps before = StepsOf("low");
  ASSERT_FALSE(before.empty());
  EXPECT_EQ(LastSteps("low"), std::set<int>{before.rbegin()->first})
      << "all its workers left at the end of the same step";
  EXPECT_EQ(before.rbegin()->second.size(), 1u) << "with the same state";
  for (const int i : {0, 1, 2}) {
    EXPECT_THAT(Log("low-worker-" + std::to_string(i), "ringmaster-sidecar"),
                HasSubstr("left by plan"));
  }
  EXPECT_TRUE(Until([&] { return !Event("low", "Preempted").empty(); }));
  EXPECT_THAT(Event("high", "Preempting"), HasSubstr("of job default/low (all that it has)"));
  EXPECT_EQ(Status("low").faults, 0);
  for (const auto& entry : fs::directory_iterator(dir_ / "low")) fs::remove(entry.path());

  End("high");
  ASSERT_TRUE(Until([&] { return Status("high").state == "Succeeded"; }));
  EXPECT_TRUE(Trains("low", 3)) << "it stands first in line";
  EXPECT_TRUE(StepsGoOn("low"));
  EXPECT_EQ(Status("low").Find("Preempted")->reason, "StartsAgain");
  EXPECT_EQ(Status("low").faults, 0);
  End("low");
  ASSERT_TRUE(Until([&] { return Status("low").state == "Succeeded"; }));
  ExpectNoStepLost("high");
}

}  // namespace
}  // namespace ringmaster::app
