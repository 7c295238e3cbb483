#include "operator/cli/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/horovod_job.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Json MpiJob() {
  return Json::parse(R"({
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"name": "mnist", "namespace": "team", "resourceVersion": "7"},
    "spec": {
      "slotsPerWorker": 2,
      "sshAuthMountPath": "/home/mpi/.ssh",
      "runPolicy": {
        "cleanPodPolicy": "Running",
        "backoffLimit": 3,
        "schedulingPolicy": {"minAvailable": 3, "priorityClass": "high"}
      },
      "mpiReplicaSpecs": {
        "Launcher": {"replicas": 1, "template": {"spec": {"containers": [{
          "name": "launcher",
          "image": "mnist:1",
          "env": [{"name": "DATA", "value": "/data"}],
          "command": ["mpirun"],
          "args": ["-np", "4", "--allow-run-as-root", "-bind-to", "none", "-x", "LR=0.1",
                   "-x", "PATH", "-mca", "pml", "ob1", "python", "train.py", "--epochs", "3"]
        }]}}},
        "Worker": {"replicas": 2, "template": {"spec": {"containers": [{
          "name": "w",
          "image": "mnist:1",
          "command": ["/usr/sbin/sshd", "-De"],
          "resources": {"limits": {"nvidia.com/gpu": 2}}
        }]}}}
      }
    }
  })");
}

TEST(ConvertTest, AnMpiJobBecomesAJobThatIsTaken) {
  const auto converted = ConvertJob(MpiJob());
  ASSERT_TRUE(converted.has_value()) << converted.error().message;
  const auto parsed = api::ParseHorovodJob(converted->job);
  ASSERT_TRUE(parsed.has_value()) << api::ToString(parsed.error());
  EXPECT_EQ(converted->job["metadata"], (Json{{"name", "mnist"}, {"namespace", "team"}}));
  const Json& spec = converted->job["spec"];
  EXPECT_EQ(spec["slotsPerWorker"], 2);
  EXPECT_EQ(spec["worker"]["replicas"], 2);
  EXPECT_EQ(spec["runPolicy"]["backoffLimit"], 3);
  EXPECT_EQ(spec["runPolicy"]["schedulingPolicy"], Json({{"priorityClass", "high"}}));
  const Json& container = spec["worker"]["template"]["spec"]["containers"][0];
  EXPECT_EQ(container["name"], "worker");
  EXPECT_EQ(container["command"], Json({"python", "train.py", "--epochs", "3"}));
  EXPECT_EQ(container["env"],
            (Json{{{"name", "LR"}, {"value", "0.1"}}, {{"name", "DATA"}, {"value", "/data"}}}));
  EXPECT_EQ(container["resources"]["limits"]["nvidia.com/gpu"], 2);
}

TEST(ConvertTest, WhatIsLeftOutIsTold) {
  const auto notes = ConvertJob(MpiJob())->notes;
  EXPECT_THAT(notes, Contains(HasSubstr("spec.sshAuthMountPath: not carried over")));
  EXPECT_THAT(notes, Contains(HasSubstr("schedulingPolicy.minAvailable: not carried over")));
  EXPECT_THAT(notes, Contains(HasSubstr("'/usr/sbin/sshd -De' is replaced")));
  EXPECT_THAT(notes,
              Contains(HasSubstr("-np 4, --allow-run-as-root, -bind-to none, -mca pml ob1")));
}

TEST(ConvertTest, NothingOfTheLauncherIsLeftOutWithoutAWord) {
  Json job = MpiJob();
  Json& launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"];
  launcher["restartPolicy"] = "OnFailure";
  launcher["news"] = 1;
  Json& pod = launcher["template"];
  pod["metadata"]["annotations"] = {{"team/scrape", "true"}};
  pod["spec"]["restartPolicy"] = "OnFailure";
  for (const char* field :
       {"initContainers", "volumes", "nodeSelector", "serviceAccountName", "news"})
    pod["spec"][field] = {"theirs"};
  Json& first = pod["spec"]["containers"][0];
  for (const char* field : {"envFrom", "volumeMounts", "securityContext"})
    first[field] = {"theirs"};
  first["resources"]["limits"] = {{"memory", "1Gi"}};
  pod["spec"]["containers"].push_back({{"name", "log"}, {"image", "log:1"}});
  const auto notes = ConvertJob(job)->notes;
  for (const std::string field :
       {"restartPolicy", "news", "template.metadata.annotations", "template.spec.restartPolicy",
        "template.spec.initContainers", "template.spec.volumes", "template.spec.nodeSelector",
        "template.spec.serviceAccountName", "template.spec.news",
        "template.spec.containers[0].envFrom", "template.spec.containers[0].volumeMounts",
        "template.spec.containers[0].securityContext",
        "template.spec.containers[0].resources.limits.memory", "template.spec.containers[1]"})
    EXPECT_THAT(notes, Contains(StartsWith("spec.mpiReplicaSpecs.Launcher." + field +
                                           ": not carried over")));
}

TEST(ConvertTest, WhatLauncherAndWorkersHaveAlikeIsNotTold) {
  Json job = MpiJob();
  for (const char* kind : {"Launcher", "Worker"}) {
    Json& pod = job["spec"]["mpiReplicaSpecs"][kind]["template"]["spec"];
    pod["volumes"] = {{{"name", "data"}}};
    pod["containers"].push_back({{"name", "log"}, {"image", "log:1"}});
  }
  EXPECT_THAT(ConvertJob(job)->notes, Not(Contains(HasSubstr("Launcher.template"))));
}

TEST(ConvertTest, AVariableThatWorkersHaveOtherwiseIsTold) {
  Json job = MpiJob();
  Json& worker = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0];
  worker["env"] = {{{"name", "DATA"}, {"value", "/ours"}}, {{"name", "LR"}, {"value", "0.5"}}};
  const auto converted = ConvertJob(job);
  EXPECT_EQ(converted->job["spec"]["worker"]["template"]["spec"]["containers"][0]["env"],
            worker["env"]);
  EXPECT_THAT(converted->notes, Contains(HasSubstr("containers[0].env DATA: not carried over")));
  EXPECT_THAT(converted->notes, Contains(HasSubstr("launcher's command: LR: not carried over")));
}

TEST(ConvertTest, AFieldThatIsNotKnownIsToldToo) {
  Json job = MpiJob();
  job["spec"]["runPolicy"]["news"] = 1;
  EXPECT_THAT(ConvertJob(job)->notes, Contains(HasSubstr("spec.runPolicy.news: not carried over")));
}

TEST(ConvertTest, OfTheMetadataOnlyWhatTheServerWroteIsLeftOutInSilence) {
  Json job = MpiJob();
  job["metadata"]["uid"] = "u";
  job["status"] = {{"startTime", "2026-01-31T12:00:00Z"}};
  EXPECT_THAT(ConvertJob(job)->notes, Not(Contains(HasSubstr("metadata"))));
  job["metadata"]["finalizers"] = {"theirs/wait"};
  job["extra"] = 1;
  const auto converted = ConvertJob(job);
  EXPECT_FALSE(converted->job["metadata"].contains("finalizers"));
  EXPECT_THAT(converted->notes, Contains(HasSubstr("metadata.finalizers: not carried over")));
  EXPECT_THAT(converted->notes, Contains(HasSubstr("extra: not carried over")));
}

TEST(ConvertTest, ASimpleShellLineIsTakenApartAndAnyOtherIsLeft) {
  Json job = MpiJob();
  Json& launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0];
  launcher.erase("args");
  launcher["command"] = {"/bin/sh", "-c", "horovodrun -np 4  python train.py"};
  auto command = [&] {
    return ConvertJob(job)->job["spec"]["worker"]["template"]["spec"]["containers"][0]["command"];
  };
  EXPECT_EQ(command(), Json({"python", "train.py"}));
  launcher["command"] = {"sh", "-c", "mpirun -np 4 python train.py && touch done"};
  EXPECT_EQ(command(), launcher["command"]);
  EXPECT_THAT(ConvertJob(job)->notes, Contains(HasSubstr("take mpirun out of it by hand")));
}

// An MPIJob of `replicas` pods whose launcher runs these words.
Json Launched(Json words, int slots = 1, int replicas = 2) {
  Json job = MpiJob();
  job["spec"]["slotsPerWorker"] = slots;
  job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = replicas;
  Json& launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0];
  launcher.erase("args");
  launcher["command"] = std::move(words);
  return job;
}

TEST(ConvertTest, TheValueOfAnOptionIsNotTakenForTheProgram) {
  const std::vector<std::vector<std::string>> options = {
      {"horovodrun", "-np", "2", "--min-np", "1", "--max-np", "3", "--host-discovery-script",
       "/etc/mpi/discover_hosts.sh"},
      {"horovodrun", "--log-level", "DEBUG"},
      {"horovodrun", "--stall-check-warning-time-seconds", "60", "-i", "key"},
      {"horovodrun", "--blacklist-cooldown-range", "10", "100", "--num-proc", "2"},
      {"mpirun", "--rankfile", "rf", "--timeout", "60", "-x", "A=b"},
      {"mpirun", "--mca", "btl", "self", "--tag-output", "--"},
      {"mpiexec", "-outfile-pattern", "out", "-prepend-rank"}};
  for (std::vector<std::string> words : options) {
    words.insert(words.end(), {"python", "train.py"});
    const auto converted = ConvertJob(Launched(words));
    const Json& pod = converted->job["spec"]["worker"]["template"]["spec"];
    EXPECT_EQ(pod["containers"][0]["command"], Json({"python", "train.py"})) << words[1];
    EXPECT_TRUE(converted->to_mend.empty()) << words[1];
  }
}

TEST(ConvertTest, AnOptionThatIsNotKnownMakesTheProgramDoubtful) {
  const auto converted = ConvertJob(Launched({"horovodrun", "--news", "3", "python", "train.py"}));
  ASSERT_EQ(converted->to_mend.size(), 1);
  EXPECT_EQ(converted->to_mend[0],
            "spec.worker.template.spec.containers[].command: '--news' is no option of horovodrun "
            "that is known here: if a value follows it, '3' is that value and not the program");
  for (const Json& words : {Json({"horovodrun", "--news=3", "python"}),
                            Json({"horovodrun", "--news", "-np", "2", "python"}),
                            Json({"horovodrun", "-np", "2", "python", "--news"})})
    EXPECT_TRUE(ConvertJob(Launched(words))->to_mend.empty()) << words;
}

TEST(ConvertTest, TheBoundsOfHorovodrunBecomeTheElasticPolicy) {
  struct Case {
    Json options;
    int slots, replicas, least, most;
    std::string note;
  };
  const Case cases[] = {
      {{"--min-np", "1", "--max-np", "3"}, 1, 2, 1, 3, "--min-np 1 --max-np 3: became spec.el"},
      {{"--min-num-proc=3", "--max-num-proc", "9"}, 2, 3, 2, 4, "--min-np 3 --max-np 9: became"},
      {{"--min-np", "1"}, 1, 2, 1, 2, "horovodrun --min-np 1: became spec.elasticPolicy"},
      {{"--max-np", "4"}, 1, 2, 2, 4, "horovodrun --max-np 4: became spec.elasticPolicy"},
      {{"--min-np", "3"},
       1,
       2,
       2,
       2,
       "not carried over: spec.worker.replicas is 2, and spec.slots"},
      {{"--max-np", "3"}, 2, 2, 2, 2, "spec.worker.replicas is 2, and spec.slotsPerWorker 2"},
      {{"--max-np", "$N"}, 1, 2, 2, 2, "horovodrun --max-np $N: not carried over"},
      {{"--min-np", "0"}, 1, 2, 2, 2, "horovodrun --min-np 0: not carried over"},
      {{"-np", "2"}, 1, 2, 2, 2, "spec.elasticPolicy: as an MPIJob, of one size"}};
  for (const Case& one : cases) {
    Json words = {"horovodrun"};
    words.insert(words.end(), one.options.begin(), one.options.end());
    words.push_back("python");
    const auto converted = ConvertJob(Launched(words, one.slots, one.replicas));
    EXPECT_EQ(converted->job["spec"]["elasticPolicy"],
              Json({{"minReplicas", one.least}, {"maxReplicas", one.most}}))
        << one.options;
    EXPECT_THAT(converted->notes, Contains(HasSubstr(one.note)));
    EXPECT_THAT(converted->notes, Not(Contains(HasSubstr("without a meaning here: --m"))));
  }
}

TEST(ConvertTest, WhatIsNoJobOfKubeflowIsRefused) {
  EXPECT_THAT(ConvertJob({{"kind", "Pod"}, {"apiVersion", "v1"}}).error().message,
              HasSubstr("it is a Pod of 'v1'"));
  EXPECT_THAT(ConvertJob({{"kind", "TrainJob"}, {"apiVersion", "kubeflow.org/v1"}}).error().message,
              HasSubstr("it is a TrainJob of 'kubeflow.org/v1': only"));
  Json job = MpiJob();
  job["spec"]["mpiReplicaSpecs"].erase("Worker");
  EXPECT_THAT(ConvertJob(job).error().message,
              HasSubstr("mpiReplicaSpecs.Worker.template.spec.containers: there is none"));
  job = MpiJob();
  job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"] = {{"spec", {{"containers", {"mpi"}}}}};
  EXPECT_THAT(ConvertJob(job).error().message,
              HasSubstr("mpiReplicaSpecs.Launcher.template.spec.containers[0]: must be an object"));
}

}  // namespace
}  // namespace ringmaster::cli
