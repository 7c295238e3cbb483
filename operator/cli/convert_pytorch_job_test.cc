#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/cli/testing/convert.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Json PyTorchJob() {
  return Json::parse(R"({
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "mnist", "namespace": "team", "labels": {"team": "vision"}},
    "spec": {
      "nprocPerNode": "2",
      "runPolicy": {
        "cleanPodPolicy": "All", "ttlSecondsAfterFinished": 60, "activeDeadlineSeconds": 3600,
        "suspend": false, "schedulingPolicy": {"queue": "q", "minAvailable": 3}
      },
      "pytorchReplicaSpecs": {
        "Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": {"spec": {"containers": [
          {"name": "pytorch", "image": "mnist:1", "command": ["torchrun", "train.py"],
           "resources": {"limits": {"nvidia.com/gpu": 2}}}]}}},
        "Worker": {"replicas": 3, "restartPolicy": "OnFailure", "template": {"spec": {
          "restartPolicy": "OnFailure",
          "containers": [
          {"name": "log", "image": "log:1"},
          {"name": "pytorch", "image": "mnist:1", "command": ["torchrun"], "args": ["train.py", "--lr=1"],
           "env": [{"name": "MASTER_ADDR", "value": "me"}, {"name": "A", "value": "1"}],
           "resources": {"limits": {"nvidia.com/gpu": 2}}}]}}}
      }
    }
  })");
}

Json& WorkerContainer(Json* job) {
  return (*job)["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][1];
}

TEST(ConvertPyTorchJobTest, BecomesAJobThatIsTaken) {
  const Converted converted = ConvertOrFail(PyTorchJob());
  ExpectTaken(converted);
  const Json& spec = converted.job["spec"];
  EXPECT_EQ(converted.job["metadata"]["labels"], (Json{{"team", "vision"}}));
  EXPECT_EQ(spec["slotsPerWorker"], 2);
  EXPECT_EQ(spec["collectives"], (Json{{"backend", "None"}}));
  EXPECT_EQ(spec["elasticPolicy"], (Json{{"minReplicas", 4}, {"maxReplicas", 4}}));
  EXPECT_EQ(
      spec["runPolicy"],
      Json::parse(R"({"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 60, "suspend": false,
                           "activeDeadlineSeconds": 3600, "schedulingPolicy": {"queue": "q"}})"));
  EXPECT_EQ(spec["worker"]["replicas"], 4);
  const Json& pod = spec["worker"]["template"]["spec"];
  EXPECT_FALSE(pod.contains("restartPolicy"));
  EXPECT_EQ(pod["containers"][0]["name"], "log");
  const Json& worker = pod["containers"][1];
  EXPECT_EQ(worker["name"], "worker");
  EXPECT_EQ(worker["command"], Json({"python3", "-u", "train.py", "--lr=1"}));
  EXPECT_FALSE(worker.contains("args"));
  EXPECT_EQ(worker["env"], Json::parse(R"([{"name": "A", "value": "1"},
                                           {"name": "OMP_NUM_THREADS", "value": "1"}])"));
}

TEST(ConvertPyTorchJobTest, WhatIsLeftOutOrGuessedIsTold) {
  const auto notes = ConvertOrFail(PyTorchJob()).notes;
  const std::string specs = "spec.pytorchReplicaSpecs.";
  const std::string container = specs + "Worker.template.spec.containers[1]";
  for (const std::string& text :
       std::vector<std::string>{specs + "Master: it is one of the 4 pods",
                                specs + "Master.restartPolicy: OnFailure is not carried over",
                                specs + "Worker.restartPolicy: OnFailure is not carried over",
                                specs + "Worker.template.spec.restartPolicy: not carried over",
                                container + ".env MASTER_ADDR: not carried over",
                                "'python3 -u' was put in front of 'train.py', a guess",
                                "spec.runPolicy.schedulingPolicy.minAvailable: not carried over",
                                "spec.collectives.backend: None was guessed", "OMP_NUM_THREADS: 1",
                                "spec.elasticPolicy: as a PyTorchJob, of one size"}) {
    EXPECT_THAT(notes, Contains(HasSubstr(text)));
  }
  EXPECT_THAT(notes, Contains(AllOf(HasSubstr("Master.template: not carried over where it differs"),
                                    HasSubstr("spec.containers[0].image"))));
}

TEST(ConvertPyTorchJobTest, AnElasticPolicyStaysOne) {
  Json job = PyTorchJob();
  job["spec"]["pytorchReplicaSpecs"].erase("Master");
  job["spec"].erase("nprocPerNode");
  job["spec"]["elasticPolicy"] = {{"minReplicas", 2},  {"maxReplicas", 5},      {"nProcPerNode", 4},
                                  {"maxRestarts", 10}, {"rdzvBackend", "c10d"}, {"metrics", {1}}};
  const Converted converted = ConvertOrFail(job);
  ExpectTaken(converted);
  const Json& spec = converted.job["spec"];
  EXPECT_EQ(spec["elasticPolicy"], (Json{{"minReplicas", 2}, {"maxReplicas", 5}}));
  EXPECT_EQ(spec["worker"]["replicas"], 3);
  EXPECT_EQ(spec["slotsPerWorker"], 4);
  EXPECT_EQ(spec["runPolicy"]["backoffLimit"], 10);
  EXPECT_THAT(converted.notes, Contains(HasSubstr("maxRestarts: became spec.runPolicy.backoff")));
  EXPECT_THAT(converted.notes, Contains(HasSubstr("rdzvBackend: not carried over")));
  EXPECT_THAT(converted.notes, Contains(HasSubstr("metrics: not carried over")));
  EXPECT_THAT(converted.notes, Not(Contains(HasSubstr("of one size"))));
}

TEST(ConvertPyTorchJobTest, TorchrunsOptionsCount) {
  Json job = PyTorchJob();
  job["spec"]["pytorchReplicaSpecs"].erase("Master");
  WorkerContainer(&job)["command"] = {"torchrun", "--nnodes=1:6", "--nproc-per-node", "gpu",
                                      "--max-restarts=3"};
  const Converted converted = ConvertOrFail(job);
  ExpectTaken(converted);
  const Json& spec = converted.job["spec"];
  EXPECT_EQ(spec["elasticPolicy"], (Json{{"minReplicas", 1}, {"maxReplicas", 6}}));
  EXPECT_EQ(spec["slotsPerWorker"], 2);
  EXPECT_EQ(spec["runPolicy"]["backoffLimit"], 3);
  EXPECT_THAT(converted.notes, Contains(HasSubstr("spec.slotsPerWorker: 2 was guessed")));
  WorkerContainer(&job)["command"] = {"torchrun", "--nnodes=$(PET_NNODES)"};
  EXPECT_THAT(ConvertOrFail(job).notes,
              Contains(HasSubstr("--nnodes $(PET_NNODES): not carried over")));
}

TEST(ConvertPyTorchJobTest, AScriptWithoutTorchrunIsOneProcess) {
  Json job = PyTorchJob();
  job["spec"].erase("nprocPerNode");
  WorkerContainer(&job)["command"] = {"python", "train.py"};
  WorkerContainer(&job).erase("args");
  const Converted converted = ConvertOrFail(job);
  ExpectTaken(converted);
  EXPECT_EQ(converted.job["spec"]["slotsPerWorker"], 1);
  EXPECT_THAT(converted.notes, Contains(HasSubstr("spec.slotsPerWorker: 1 was guessed")));
  job["spec"]["nprocPerNode"] = "2";
  EXPECT_THAT(ConvertOrFail(job).notes, Contains(HasSubstr("nprocPerNode: 2 is for torchrun")));
}

TEST(ConvertPyTorchJobTest, AScriptOfHorovodKeepsItsCollectives) {
  Json job = PyTorchJob();
  WorkerContainer(&job)["command"] = {"horovodrun", "-np", "8", "python"};
  const Converted converted = ConvertOrFail(job);
  ExpectTaken(converted);
  EXPECT_FALSE(converted.job["spec"].contains("collectives"));
  EXPECT_THAT(converted.notes, Contains(HasSubstr("the command begins with horovodrun")));
}

TEST(ConvertPyTorchJobTest, TheBoundsOfHorovodrunCountUnlessTheJobHasItsOwn) {
  Json job = PyTorchJob();
  WorkerContainer(&job).erase("args");
  WorkerContainer(&job)["command"] = {"horovodrun", "--min-np", "4", "--max-np", "12", "python"};
  Converted converted = ConvertOrFail(job);
  EXPECT_EQ(converted.job["spec"]["elasticPolicy"], (Json{{"minReplicas", 2}, {"maxReplicas", 6}}));
  EXPECT_THAT(converted.notes,
              Contains("horovodrun --min-np 4 --max-np 12: became spec.elasticPolicy"));
  job["spec"]["elasticPolicy"] = {{"minReplicas", 3}};
  converted = ConvertOrFail(job);
  EXPECT_EQ(converted.job["spec"]["elasticPolicy"], (Json{{"minReplicas", 3}, {"maxReplicas", 4}}));
  EXPECT_THAT(converted.notes, Contains("horovodrun --max-np 12: not carried over: "
                                        "spec.elasticPolicy counts"));
}

TEST(ConvertPyTorchJobTest, AnOptionThatIsNotKnownIsToBeMendedByHand) {
  Json job = PyTorchJob();
  WorkerContainer(&job)["command"] = {"torchrun", "--news", "3"};
  EXPECT_THAT(ConvertOrFail(job).to_mend,
              Contains(HasSubstr("'--news' is no option of torchrun that is known here")));
}

TEST(ConvertPyTorchJobTest, WhatCantBeSeenIsToBeMendedByHand) {
  Json job = PyTorchJob();
  WorkerContainer(&job).erase("command");
  Converted converted = ConvertOrFail(job);
  EXPECT_THAT(converted.notes, Contains(HasSubstr("the entrypoint of the image can't be seen")));
  EXPECT_FALSE(api::ParseHorovodJob(converted.job).has_value());
  const auto& pod = converted.job["spec"]["worker"]["template"]["spec"];
  EXPECT_EQ(pod["containers"][1]["args"], Json({"train.py", "--lr=1"}));

  WorkerContainer(&job)["command"] = {"bash", "-c", "cd /x && torchrun train.py"};
  WorkerContainer(&job).erase("args");
  EXPECT_THAT(ConvertOrFail(job).notes,
              Contains(HasSubstr("torchrun stands where this command can't")));
  WorkerContainer(&job)["command"] = {"/venv/bin/accelerate", "launch", "train.py"};
  EXPECT_THAT(ConvertOrFail(job).notes, Contains(HasSubstr("starts processes of its own")));
}

TEST(ConvertPyTorchJobTest, IsRefusedWithoutPods) {
  Json job = PyTorchJob();
  job["spec"]["pytorchReplicaSpecs"] = {{"Chief", 1}};
  EXPECT_THAT(ConvertJob(job).error().message, HasSubstr("neither a Master nor a Worker"));
  job = PyTorchJob();
  job["spec"]["pytorchReplicaSpecs"]["Master"].erase("template");
  EXPECT_THAT(ConvertJob(job).error().message,
              HasSubstr("Master.template.spec.containers: there is none"));
  job["spec"]["pytorchReplicaSpecs"]["Master"]["template"] = {
      {"spec", {{"containers", {"trainer"}}}}};
  EXPECT_THAT(ConvertJob(job).error().message,
              HasSubstr("Master.template.spec.containers[0]: must be an object"));
}

}  // namespace
}  // namespace ringmaster::cli
