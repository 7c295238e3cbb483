#include "operator/cli/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/horovod_job.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

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
  const auto converted = ConvertMpiJob(MpiJob());
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
  const auto notes = ConvertMpiJob(MpiJob())->notes;
  EXPECT_THAT(notes, Contains(HasSubstr("spec.sshAuthMountPath: not carried over")));
  EXPECT_THAT(notes, Contains(HasSubstr("schedulingPolicy.minAvailable: not carried over")));
  EXPECT_THAT(notes, Contains(HasSubstr("'/usr/sbin/sshd -De' is replaced")));
  EXPECT_THAT(notes,
              Contains(HasSubstr("-np 4, --allow-run-as-root, -bind-to none, -mca pml ob1")));
}

TEST(ConvertTest, AFieldThatIsNotKnownIsToldToo) {
  Json job = MpiJob();
  job["spec"]["runPolicy"]["news"] = 1;
  EXPECT_THAT(ConvertMpiJob(job)->notes,
              Contains(HasSubstr("spec.runPolicy.news: not carried over")));
}

TEST(ConvertTest, ASimpleShellLineIsTakenApartAndAnyOtherIsLeft) {
  Json job = MpiJob();
  Json& launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0];
  launcher.erase("args");
  launcher["command"] = {"/bin/sh", "-c", "horovodrun -np 4  python train.py"};
  auto command = [&] {
    return ConvertMpiJob(job)
        ->job["spec"]["worker"]["template"]["spec"]["containers"][0]["command"];
  };
  EXPECT_EQ(command(), Json({"python", "train.py"}));
  launcher["command"] = {"sh", "-c", "mpirun -np 4 python train.py && touch done"};
  EXPECT_EQ(command(), launcher["command"]);
  EXPECT_THAT(ConvertMpiJob(job)->notes, Contains(HasSubstr("take mpirun out of it by hand")));
}

TEST(ConvertTest, OptionsOfBothMpisAreKnown) {
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::string> notes;
  EXPECT_THAT(WithoutLauncher({"mpiexec", "-ppn", "2", "-genv", "A", "1", "--timeout=3", "./a.out"},
                              &env, &notes),
              ElementsAre("./a.out"));
  EXPECT_THAT(env, ElementsAre(Pair("A", "1")));
  env.clear(), notes.clear();
  EXPECT_THAT(WithoutLauncher({"/opt/mpirun", "./a.out"}, &env, &notes), ElementsAre("./a.out"));
  EXPECT_THAT(notes, IsEmpty());
}

TEST(ConvertTest, WhatIsNoMpiJobIsRefused) {
  EXPECT_THAT(ConvertMpiJob({{"kind", "Pod"}, {"apiVersion", "v1"}}).error().message,
              HasSubstr("it is a Pod of 'v1'"));
  Json job = MpiJob();
  job["spec"]["mpiReplicaSpecs"].erase("Worker");
  EXPECT_THAT(ConvertMpiJob(job).error().message,
              HasSubstr("mpiReplicaSpecs.Worker.template.spec.containers: there is none"));
}

}  // namespace
}  // namespace ringmaster::cli
