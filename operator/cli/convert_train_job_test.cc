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

Json TrainJob() {
  return Json::parse(R"({
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "llm", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    "spec": {
      "runtimeRef": {"name": "torch-distributed"},
      "managedBy": "trainer.kubeflow.org/trainjob-controller",
      "suspend": true,
      "activeDeadlineSeconds": 7200,
      "labels": {"team": "a"},
      "annotations": {"note": "b"},
      "initializer": {"dataset": {"storageUri": "hf://data"}, "model": {"storageUri": "s3://model"}},
      "trainer": {
        "image": "llm:1", "command": ["torchrun", "train.py"], "args": ["--epochs", "3"],
        "env": [{"name": "A", "value": "1"}],
        "numNodes": 2, "numProcPerNode": 4,
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}
      },
      "podTemplateOverrides": [
        {"targetJobs": [{"name": "node"}],
         "metadata": {"labels": {"team": "c"}},
         "spec": {"serviceAccountName": "sa", "nodeSelector": {"gpu": "a"},
                  "tolerations": [{"operator": "Exists"}],
                  "volumes": [{"name": "data", "emptyDir": {}}],
                  "containers": [{"name": "node", "volumeMounts": [{"name": "data", "mountPath": "/d"}]},
                                 {"name": "side", "env": []}],
                  "initContainers": [{"name": "fetch", "env": []}]}},
        {"targetJobs": [{"name": "dataset-initializer"}], "spec": {"serviceAccountName": "other"}},
        {"targetJobs": [{"name": "node"}],
         "spec": {"nodeSelector": {"zone": "z"}, "hostNetwork": true,
                  "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]}}
      ]
    }
  })");
}

TEST(ConvertTrainJobTest, BecomesAJobThatIsTaken) {
  const Converted converted = ConvertOrFail(TrainJob());
  ExpectTaken(converted);
  const Json& spec = converted.job["spec"];
  EXPECT_EQ(spec["slotsPerWorker"], 4);
  EXPECT_EQ(spec["worker"]["replicas"], 2);
  EXPECT_EQ(spec["collectives"], (Json{{"backend", "None"}}));
  EXPECT_EQ(spec["runPolicy"], (Json{{"suspend", true}, {"activeDeadlineSeconds", 7200}}));
  EXPECT_EQ(spec["worker"]["template"], Json::parse(R"({
    "metadata": {"labels": {"team": "c"}, "annotations": {"note": "b"}},
    "spec": {
      "serviceAccountName": "sa",
      "nodeSelector": {"gpu": "a", "zone": "z"},
      "tolerations": [{"operator": "Exists"}],
      "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}],
      "containers": [{
        "name": "worker", "image": "llm:1",
        "command": ["python3", "-u", "train.py", "--epochs", "3"],
        "env": [{"name": "A", "value": "1"}, {"name": "OMP_NUM_THREADS", "value": "1"}],
        "resources": {"limits": {"nvidia.com/gpu": 4}},
        "volumeMounts": [{"name": "data", "mountPath": "/d"}]
      }]
    }
  })"));
}

TEST(ConvertTrainJobTest, WhatIsLeftOutOrGuessedIsTold) {
  const auto notes = ConvertOrFail(TrainJob()).notes;
  for (const char* text :
       {"spec.runtimeRef: ClusterTrainingRuntime 'torch-distributed' can't be seen from here. From "
        "it may come: volumes, environment, init containers. Look with `kubectl get "
        "clustertrainingruntime torch-distributed -o yaml`",
        "spec.managedBy: not carried over",
        "spec.suspend: carried over, though the job has the label kueue.x-k8s.io/queue-name",
        "spec.initializer.dataset: not carried over", "fetch 's3://model'",
        "spec.podTemplateOverrides[0].spec.containers[1]: not carried over: container 'side'",
        "spec.podTemplateOverrides[0].spec.initContainers[0]: not carried over",
        "spec.podTemplateOverrides[1]: not carried over: it is for 'dataset-initializer'",
        "spec.podTemplateOverrides[2].spec.hostNetwork: not carried over",
        "spec.collectives.backend: None was guessed"})
    EXPECT_THAT(notes, Contains(HasSubstr(text)));
}

TEST(ConvertTrainJobTest, WhatComesFromTheRuntimeIsNamed) {
  Json job = TrainJob();
  job["spec"].erase("trainer");
  job["spec"]["runtimeRef"] = {{"kind", "TrainingRuntime"}, {"name", "mine"}};
  const Converted converted = ConvertOrFail(job);
  EXPECT_THAT(converted.notes,
              Contains(AllOf(HasSubstr("TrainingRuntime 'mine'"),
                             HasSubstr("the image, the command, resources, the number of pods, "
                                       "processes in each pod, volumes"))));
  EXPECT_THAT(converted.notes, Contains(HasSubstr("spec.trainer.image: there is none")));
  EXPECT_THAT(converted.notes, Contains(HasSubstr("spec.trainer.command: there is none")));
  EXPECT_THAT(converted.notes, Contains(HasSubstr("spec.worker.replicas: 1 was guessed")));
  EXPECT_FALSE(api::ParseHorovodJob(converted.job).has_value());
}

TEST(ConvertTrainJobTest, OlderAndNewerOverridesAreReadToo) {
  Json job = TrainJob();
  job["spec"].erase("podTemplateOverrides");
  job["spec"]["podSpecOverrides"] = Json::parse(
      R"([{"targetJob": "node", "serviceAccountName": "old", "nodeSelector": {"a": "1"}}])");
  job["spec"]["runtimePatches"] = Json::parse(R"([
    {"manager": "kueue.x-k8s.io/manager", "trainingRuntimeSpec": {}},
    {"manager": "me", "time": "2026-01-31T12:00:00Z", "trainingRuntimeSpec": {"template": {
      "metadata": {"labels": {"x": "y"}},
      "spec": {"replicatedJobs": [
        {"name": "launcher", "template": {}},
        {"name": "node", "template": {"spec": {"template": {
          "metadata": {"annotations": {"p": "q"}},
          "spec": {"serviceAccountName": "new"}}}}}]}}}}])");
  const Converted converted = ConvertOrFail(job);
  ExpectTaken(converted);
  const Json& pod = converted.job["spec"]["worker"]["template"];
  EXPECT_EQ(pod["spec"]["serviceAccountName"], "new");
  EXPECT_EQ(pod["spec"]["nodeSelector"], (Json{{"a", "1"}}));
  EXPECT_EQ(pod["metadata"]["annotations"], (Json{{"note", "b"}, {"p", "q"}}));
  for (const char* text :
       {"spec.runtimePatches[0]: not carried over: kueue.x-k8s.io/manager wrote it",
        "spec.runtimePatches[1].trainingRuntimeSpec.template.metadata: not carried over",
        "template.spec.replicatedJobs[0]: not carried over: it is for 'launcher'"})
    EXPECT_THAT(converted.notes, Contains(HasSubstr(text)));
  EXPECT_THAT(converted.notes, Not(Contains(HasSubstr("this command doesn't know it"))));
}

TEST(ConvertTrainJobTest, NothingOfAPatchIsLeftOutWithoutAWord) {
  Json job = TrainJob();
  job["spec"]["runtimePatches"] = Json::parse(R"([
    {"trainingRuntimeSpec": {"mlPolicy": 1, "template": {"a": 1, "spec": {"b": 1, "replicatedJobs": [
      {"name": "node", "replicas": 2, "template": {"c": 1, "spec": {"d": 1, "template": {
        "e": 1, "spec": {"f": 1}}}}}]}}}}])");
  const auto notes = ConvertOrFail(job).notes;
  const std::string runtime = "spec.runtimePatches[0].trainingRuntimeSpec";
  const std::string node = runtime + ".template.spec.replicatedJobs[0]";
  for (const std::string& field :
       {runtime + ".mlPolicy", runtime + ".template.a", runtime + ".template.spec.b",
        node + ".replicas", node + ".template.c", node + ".template.spec.d",
        node + ".template.spec.template.e", node + ".template.spec.template.spec.f"})
    EXPECT_THAT(notes, Contains(HasSubstr(field + ": not carried over")));
}

TEST(ConvertTrainJobTest, AListWhoseItemsHaveNoNameIsReplacedAsAWhole) {
  Json job = TrainJob();
  const auto terms = [](int first) {
    return Json{{"spec", {{"affinity", {{"terms", {{{"x", first}}, {{"x", first + 1}}}}}}}}};
  };
  job["spec"]["podTemplateOverrides"] = {terms(1), terms(3)};
  const Json converted = ConvertOrFail(job).job;
  EXPECT_EQ(converted["/spec/worker/template/spec/affinity/terms"_json_pointer],
            (Json{{{"x", 3}}, {{"x", 4}}}));
}

TEST(ConvertTrainJobTest, AFieldThatIsNotKnownIsToldToo) {
  Json job = TrainJob();
  job["spec"]["trainer"]["news"] = 1;
  job["spec"]["modelConfig"] = 1;
  const auto notes = ConvertOrFail(job).notes;
  EXPECT_THAT(notes, Contains(HasSubstr("spec.trainer.news: not carried over")));
  EXPECT_THAT(notes, Contains(HasSubstr("spec.modelConfig: not carried over")));
}

}  // namespace
}  // namespace ringmaster::cli
