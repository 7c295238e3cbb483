// Real processes under the kubelet: order, restarts, grace, and that nothing is left.
#include "operator/kubelet/kubelet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/kube/base64.h"
#include "operator/kube/resources.h"
#include "operator/kube/testing/wrapped_api.h"
#include "operator/kubelet/process.h"
#include "operator/local/scheduler.h"
#include "operator/local/store/in_memory_api.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::kubelet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Reading this ConfigMap throws, as a defect would.
constexpr char kThrowing[] = "throwing";

class ThrowingApi : public kube::testing::WrappedApi {
 public:
  using WrappedApi::WrappedApi;
  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    if (name == kThrowing) throw std::runtime_error("thrown by the test");
    return WrappedApi::Get(resource, ns, name);
  }
};

class KubeletTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RunnerOptions options;
    options.run_dir = dir_;
    options.bin_dir = dir_ / "bin";
    options.run_mark = "RINGMASTER_RUN=" + dir_.filename().string();
    options.machine_env = {"PATH=/usr/bin:/bin", "MACHINE=here"};
    options.first_backoff = milliseconds(5);
    mark_ = options.run_mark;
    store_ = std::make_shared<local::Store>(local::StoreOptions{});
    Json node = {
        {"metadata", {{"name", "local-0"}}},
        {"status", {{"allocatable", {{"cpu", "64"}, {"memory", "8Gi"}, {"pods", "100"}}}}}};
    ASSERT_TRUE(store_->Create(kube::Nodes(), "", node));
    kubelet_ = std::make_unique<Kubelet>(
        options, std::make_shared<ThrowingApi>(std::make_shared<local::InMemoryApi>(store_)));
    scheduler_ = std::make_unique<local::Scheduler>(store_);
    kubelet_->Start();
    scheduler_->Start();
  }
  void TearDown() override {
    scheduler_->Stop();
    kubelet_->Stop(seconds(0));
    EXPECT_TRUE(ProcessesWithEntry(mark_).empty()) << "processes left behind";
  }

  static Json Shell(const std::string& name, const std::string& script) {
    return {{"name", name}, {"image", "any"}, {"command", {"sh", "-c", script}}};
  }
  static Json Sidecar(const std::string& name, const std::string& script) {
    Json c = Shell(name, script);
    c["restartPolicy"] = "Always";
    return c;
  }
  static Json Pod(const std::string& name, std::vector<Json> containers,
                  std::vector<Json> init = {}, const std::string& policy = "Never") {
    return {{"metadata", {{"name", name}}},
            {"spec",
             {{"restartPolicy", policy}, {"containers", containers}, {"initContainers", init}}}};
  }
  void Run(const Json& pod) {
    auto created = store_->Create(kube::Pods(), "default", pod);
    ASSERT_TRUE(created) << created.error().dump();
  }
  Json Get(const std::string& name) {
    auto pod = store_->Get(kube::Pods(), "default", name);
    return pod ? *pod : Json();
  }
  // The first state of the pod (null when it is gone) for which `holds`.
  template <class F>
  Json WaitFor(const std::string& name, F holds) {
    auto cursor = store_->Watch(kube::Pods(), "default", {});
    auto deadline = Clock::now() + seconds(30);
    Json pod = Get(name);
    while (!holds(pod)) {
      if (Clock::now() > deadline) {
        ADD_FAILURE() << "not within 30 s; the pod is " << pod.dump(1);
        break;
      }
      (void)cursor->Next(milliseconds(50));
      pod = Get(name);
    }
    return pod;
  }
  Json WaitForPhase(const std::string& name, const std::string& phase) {
    return WaitFor(name,
                   [&](const Json& pod) { return pod["status"].value("phase", "") == phase; });
  }
  void WaitGone(const std::string& name) {
    WaitFor(name, [](const Json& pod) { return pod.is_null(); });
  }
  std::string Log(const std::string& pod, const std::string& container) {
    std::ifstream file(dir_ / "logs" / pod / (container + ".log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void WaitForLog(const std::string& pod, const std::string& container, const std::string& text) {
    auto deadline = Clock::now() + seconds(30);
    while (Log(pod, container).find(text) == std::string::npos) {
      ASSERT_LT(Clock::now(), deadline) << "log: " << Log(pod, container);
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  static Json Status(const Json& pod, const std::string& container) {
    for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
      for (const Json& c : pod["status"].value(list, Json::array())) {
        if (c["name"] == container) return c;
      }
    }
    return {};
  }
  static std::string Condition(const Json& pod, const std::string& type) {
    for (const Json& c : pod["status"].value("conditions", Json::array())) {
      if (c["type"] == type) return c["status"];
    }
    return "";
  }
  // Writes what `change` makes of the pod, again if the kubelet or the scheduler wrote meanwhile.
  template <class F>
  void Change(const std::string& name, F change) {
    auto deadline = Clock::now() + seconds(30);
    while (true) {
      Json pod = Get(name);
      change(pod);
      auto written = store_->Update(kube::Pods(), "default", name, pod, "");
      if (written) return;
      ASSERT_EQ(written.error().value("reason", ""), "Conflict") << written.error().dump();
      ASSERT_LT(Clock::now(), deadline);
    }
  }
  void Delete(const std::string& name, std::optional<int> grace = {}) {
    kube::DeleteOptions options;
    options.grace_period_seconds = grace;
    ASSERT_TRUE(store_->Delete(kube::Pods(), "default", name, options));
  }

  support::TempDir temporary_;
  const std::filesystem::path dir_ = temporary_.path();
  std::string mark_;
  std::shared_ptr<local::Store> store_;
  std::unique_ptr<Kubelet> kubelet_;
  std::unique_ptr<local::Scheduler> scheduler_;
};

TEST_F(KubeletTest, APodThatSucceedsIsSucceededAndItsOutputIsInTheLog) {
  Run(Pod("p", {Shell("main", "echo hello; echo oops >&2")}));
  Json pod = WaitForPhase("p", "Succeeded");
  Json terminated = Status(pod, "main")["state"]["terminated"];
  EXPECT_EQ(terminated["exitCode"], 0);
  EXPECT_EQ(terminated["reason"], "Completed");
  EXPECT_EQ(Log("p", "main"), "hello\noops\n");
  EXPECT_EQ(Condition(pod, "PodScheduled"), "True");
  EXPECT_EQ(pod["status"]["podIP"], "127.0.0.1");
}

TEST_F(KubeletTest, PodsOfOneNameInTwoNamespacesHaveLogsOfTheirOwn) {
  ASSERT_TRUE(store_->Create(kube::Namespaces(), "", {{"metadata", {{"name", "team"}}}}));
  Run(Pod("p", {Shell("main", "echo mine")}));
  ASSERT_TRUE(store_->Create(kube::Pods(), "team", Pod("p", {Shell("main", "echo theirs")})));
  WaitForPhase("p", "Succeeded");
  WaitForLog("team_p", "main", "theirs\n");
  EXPECT_EQ(Log("p", "main"), "mine\n");
}

TEST_F(KubeletTest, AFailureIsReportedWithItsExitCode) {
  Run(Pod("p", {Shell("main", "exit 7")}));
  Json pod = WaitForPhase("p", "Failed");
  EXPECT_EQ(Status(pod, "main")["state"]["terminated"]["exitCode"], 7);
  EXPECT_EQ(Status(pod, "main")["state"]["terminated"]["reason"], "Error");
}

TEST_F(KubeletTest, DeathBySignalIs128PlusTheSignal) {
  Run(Pod("p", {Shell("main", "kill -9 $$$$")}));
  EXPECT_EQ(Status(WaitForPhase("p", "Failed"), "main")["state"]["terminated"]["exitCode"], 137);
}

TEST_F(KubeletTest, InitContainersRunInOrderBeforeSidecarsAndMains) {
  std::string file = (dir_ / "order").string();
  Run(Pod(
      "p", {Shell("main", "echo main >> " + file)},
      {Shell("one", "sleep 0.05; echo one >> " + file),
       Sidecar("side", "echo side >> " + file + "; exec sleep 100"),
       Shell("two", "until grep -q side " + file + "; do sleep 0.01; done; echo two >> " + file)}));
  WaitForPhase("p", "Succeeded");
  std::ifstream in(file);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text, "one\nside\ntwo\nmain\n");
}

TEST_F(KubeletTest, AFailedInitContainerFailsThePodAndMainsNeverStart) {
  Run(Pod("p", {Shell("main", "echo never")}, {Shell("setup", "exit 3")}));
  Json pod = WaitForPhase("p", "Failed");
  EXPECT_EQ(Status(pod, "setup")["state"]["terminated"]["exitCode"], 3);
  EXPECT_EQ(Condition(pod, "Initialized"), "False");
  EXPECT_EQ(Log("p", "main"), "");
}

TEST_F(KubeletTest, SidecarsEndAfterTheMainsAndThePodIsOverOnlyThen) {
  // The main container ends only when the sidecar's trap is set: TERM comes right after.
  std::string up = (dir_ / "up").string();
  std::string side = "trap 'sleep 0.1; echo side-ended; exit 0' TERM; touch " + up +
                     "; while :; do sleep 0.01; done";
  Run(Pod("p", {Shell("main", "until test -e " + up + "; do sleep 0.01; done")},
          {Sidecar("side", side)}));
  Json pod = WaitForPhase("p", "Succeeded");
  EXPECT_THAT(Log("p", "side"), HasSubstr("side-ended"));
  EXPECT_TRUE(Status(pod, "side")["state"].contains("terminated"));
}

TEST_F(KubeletTest, OnFailureRestartsUntilItSucceeds) {
  std::string file = (dir_ / "count").string();
  Run(Pod("p", {Shell("main", "echo x >> " + file + "; test $(wc -l < " + file + ") -ge 3")}, {},
          "OnFailure"));
  Json pod = WaitForPhase("p", "Succeeded");
  EXPECT_EQ(Status(pod, "main")["restartCount"], 2);
  EXPECT_EQ(Status(pod, "main")["lastState"]["terminated"]["exitCode"], 1);
}

TEST_F(KubeletTest, ACrashedSidecarIsRestartedWhileTheMainGoesOn) {
  std::string file = (dir_ / "crashed").string();
  Run(Pod("p", {Shell("main", "exec sleep 100")},
          {Sidecar("side",
                   "test -e " + file + " || { touch " + file + "; exit 1; }; exec sleep 100")}));
  Json pod = WaitFor("p", [&](const Json& pod) {
    Json side = Status(pod, "side");
    return side.is_object() && side["restartCount"] == 1 && side["state"].contains("running");
  });
  EXPECT_EQ(Status(pod, "main")["restartCount"], 0);
  EXPECT_EQ(Condition(pod, "Initialized"), "True");
}

TEST_F(KubeletTest, ACrashLoopWaitsWithAReason) {
  Run(Pod("p", {Shell("main", "exit 1")}, {}, "Always"));
  Json pod = WaitFor("p", [&](const Json& pod) {
    Json main = Status(pod, "main");
    return main.is_object() && main.value("restartCount", 0) >= 2 &&
           main["state"].contains("waiting");
  });
  EXPECT_EQ(Status(pod, "main")["state"]["waiting"]["reason"], "CrashLoopBackOff");
  EXPECT_EQ(pod["status"]["phase"], "Running");
}

TEST_F(KubeletTest, EnvironmentHasTheMachinesTheFieldsAndExpansion) {
  Json c = Shell("main", "echo \"$MACHINE $NAME $IP $LABEL $BOTH $HOSTNAME\"; echo $0 $1");
  c["command"].push_back("$(NAME)");
  c["args"] = {"$$(NAME)-$(UNKNOWN)"};
  c["env"] = {
      {{"name", "NAME"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}},
      {{"name", "IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}},
      {{"name", "LABEL"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.labels['a']"}}}}}},
      {{"name", "BOTH"}, {"value", "$(NAME)@$(IP)"}}};
  Json pod = Pod("p", {c});
  pod["metadata"]["labels"] = {{"a", "b"}};
  Run(pod);
  WaitForPhase("p", "Succeeded");
  EXPECT_EQ(Log("p", "main"), "here p 127.0.0.1 b p@127.0.0.1 p\np $(NAME)-$(UNKNOWN)\n");
}

TEST_F(KubeletTest, TheLauncherHearsWhereOutputIsToBeKept) {
  Json pod = Pod("p", {Shell("main", "echo $RINGMASTER_OUTPUT_DIR")});
  pod["metadata"]["annotations"] = {{api::kLocalOutputDirAnnotation, "/kept here"}};
  Run(pod);
  WaitForPhase("p", "Succeeded");
  EXPECT_EQ(Log("p", "main"), "/kept here\n");
}

TEST_F(KubeletTest, VolumesAreDirectoriesSharedByTheContainersOfAPod) {
  Json writer = Shell("writer", "echo data > $RINGMASTER_MOUNT_MY_VOLUME/file");
  Json reader = Shell("reader",
                      "cat $(RINGMASTER_MOUNT_MY_VOLUME)/file; cat $RINGMASTER_MOUNT_CONF/k "
                      "$RINGMASTER_MOUNT_SEC/s");
  reader["env"] = {{{"name", "RINGMASTER_MOUNT_MY_VOLUME"}, {"value", "/on/a/cluster"}}};
  for (Json* c : {&writer, &reader}) {
    (*c)["volumeMounts"] = {{{"name", "my-volume"}, {"mountPath", "/on/a/cluster"}},
                            {{"name", "conf"}, {"mountPath", "/conf"}},
                            {{"name", "sec"}, {"mountPath", "/sec"}}};
  }
  ASSERT_TRUE(store_->Create(kube::ConfigMaps(), "default",
                             {{"metadata", {{"name", "cm"}}}, {"data", {{"k", "conf\n"}}}}));
  ASSERT_TRUE(store_->Create(kube::Secrets(), "default",
                             {{"metadata", {{"name", "s"}}}, {"stringData", {{"s", "secret\n"}}}}));
  Json pod = Pod("p", {reader}, {writer});
  pod["spec"]["volumes"] = {{{"name", "my-volume"}, {"emptyDir", Json::object()}},
                            {{"name", "conf"}, {"configMap", {{"name", "cm"}}}},
                            {{"name", "sec"}, {"secret", {{"secretName", "s"}}}}};
  Run(pod);
  WaitForPhase("p", "Succeeded");
  EXPECT_EQ(Log("p", "reader"), "data\nconf\nsecret\n");
}

TEST_F(KubeletTest, FilesOfTheDownwardApiSayWhatTheySayOnACluster) {
  const auto field = [](const char* path, const char* file) {
    return Json{{"path", file}, {"fieldRef", {{"fieldPath", path}}}};
  };
  const auto amount = [](const char* resource, const char* file) {
    return Json{{"path", file},
                {"resourceFieldRef", {{"containerName", "main"}, {"resource", resource}}}};
  };
  Json main = Shell("main", "cd $RINGMASTER_MOUNT_INFO; cat labels notes name memory cpu");
  main["volumeMounts"] = {{{"name", "info"}, {"mountPath", "/info"}}};
  main["resources"]["limits"] = {{"memory", "2Mi"}, {"cpu", "100m"}};
  Json pod = Pod("p", {main});
  pod["metadata"]["labels"] = {{"a", "1"}, {"b", "2"}};
  pod["metadata"]["annotations"] = {{"c", "say \"x\""}};
  pod["spec"]["volumes"] = {
      {{"name", "info"},
       {"downwardAPI",
        {{"items",
          {field("metadata.labels", "labels"), field("metadata.annotations", "notes"),
           field("metadata.name", "name"), amount("limits.memory", "memory"),
           amount("limits.cpu", "cpu")}}}}}};
  Run(pod);
  WaitForPhase("p", "Succeeded");
  EXPECT_THAT(Log("p", "main"), testing::AllOf(testing::HasSubstr("a=\"1\"\nb=\"2\"\n"),
                                               testing::HasSubstr("c=\"say \\\"x\\\"\"\n"),
                                               testing::EndsWith("p20971521")));
}

TEST_F(KubeletTest, AFieldOfTheDownwardApiThatIsNotThereIsSaid) {
  Json main = Shell("main", "true");
  main["volumeMounts"] = {{{"name", "info"}, {"mountPath", "/info"}}};
  Json pod = Pod("p", {main});
  pod["spec"]["volumes"] = {
      {{"name", "info"},
       {"downwardAPI",
        {{"items", {{{"path", "f"}, {"fieldRef", {{"fieldPath", "status.phase"}}}}}}}}}};
  Run(pod);
  const auto why = [](const Json& pod) {
    return fields::TextAt(pod, "/status/containerStatuses/0/state/waiting/message");
  };
  const Json waits = WaitFor("p", [&](const Json& pod) { return !why(pod).empty(); });
  EXPECT_EQ(why(waits), "volume info: fieldPath \"status.phase\" is not supported in local mode");
}

TEST_F(KubeletTest, AFileOfAVolumeThatCantBeWrittenIsSaidAndOtherPodsGoOn) {
  ASSERT_TRUE(store_->Create(kube::ConfigMaps(), "default",
                             {{"metadata", {{"name", "cm"}}}, {"data", {{"a", "1"}, {"b", "2"}}}}));
  const auto item = [](const char* key, const std::string& path) {
    return Json{{"key", key}, {"path", path}};
  };
  struct Case {
    const char* pod;
    Json volume;
    const char* message;
  };
  const Case cases[] = {
      {"folder",
       {{"configMap",
         {{"name", "cm"}, {"items", {item("a", "settings"), item("b", "settings/extra.yaml")}}}}},
       "settings/extra.yaml can't be written"},
      {"escaping",
       {{"configMap", {{"name", "cm"}, {"items", {item("a", "../../../../escaped.txt")}}}}},
       "path \"../../../../escaped.txt\" is not below the volume"},
      {"long",
       {{"downwardAPI",
         {{"items",
           {{{"path", std::string(300, 'x')}, {"fieldRef", {{"fieldPath", "metadata.name"}}}}}}}}},
       "can't be written: File name too long"}};
  for (const auto& [name, volume, message] : cases) {
    Json c = Shell("main", "true");
    c["volumeMounts"] = {{{"name", "v"}, {"mountPath", "/v"}}};
    Json pod = Pod(name, {c});
    pod["spec"]["volumes"] = Json::array({volume});
    pod["spec"]["volumes"][0]["name"] = "v";
    Run(pod);
    const std::string wanted = message;
    WaitFor(name, [&](const Json& pod) {
      const Json main = Status(pod, "main");
      return main.is_object() && main["state"].contains("waiting") &&
             main["state"]["waiting"]["reason"] == "CreateContainerConfigError" &&
             main["state"]["waiting"]["message"].get<std::string>().find(wanted) !=
                 std::string::npos;
    });
  }
  Run(Pod("fine", {Shell("main", "true")}));
  WaitForPhase("fine", "Succeeded");
}

TEST_F(KubeletTest, AnUnexpectedErrorFailsItsPodAlone) {
  Run(Pod("fine", {Shell("main", "echo up; exec sleep 100")}));
  WaitForLog("fine", "main", "up");
  Json c = Shell("main", "true");
  c["envFrom"] = {{{"configMapRef", {{"name", kThrowing}}}}};
  Run(Pod("p", {c}));
  Json pod = WaitForPhase("p", "Failed");
  EXPECT_EQ(pod["status"]["reason"], "KubeletError");
  EXPECT_THAT(pod["status"]["message"].get<std::string>(), HasSubstr("thrown by the test"));
  EXPECT_EQ(Get("fine")["status"]["phase"], "Running");
}

TEST_F(KubeletTest, AMissingSecretIsSaidAndWaitedFor) {
  Json c = Shell("main", "echo $S");
  c["env"] = {{{"name", "S"}, {"valueFrom", {{"secretKeyRef", {{"name", "late"}, {"key", "k"}}}}}}};
  Run(Pod("p", {c}));
  Json pod = WaitFor("p", [&](const Json& pod) {
    Json main = Status(pod, "main");
    return main.is_object() && main["state"].contains("waiting") &&
           main["state"]["waiting"]["reason"] == "CreateContainerConfigError";
  });
  EXPECT_THAT(Status(pod, "main")["state"]["waiting"]["message"].get<std::string>(),
              HasSubstr("couldn't find key k in Secret late"));
  ASSERT_TRUE(store_->Create(kube::Secrets(), "default",
                             {{"metadata", {{"name", "late"}}}, {"stringData", {{"k", "came"}}}}));
  WaitForPhase("p", "Succeeded");
  EXPECT_EQ(Log("p", "main"), "came\n");
}

TEST_F(KubeletTest, AMissingCommandIsNamed) {
  Json c = Shell("main", "");
  c["command"] = {"no-such-program-at-all"};
  Run(Pod("p", {c}));
  Json state = Status(WaitForPhase("p", "Failed"), "main")["state"]["terminated"];
  EXPECT_EQ(state["reason"], "ContainerCannotRun");
  EXPECT_EQ(state["exitCode"], 127);
  EXPECT_EQ(state["message"], "\"no-such-program-at-all\": executable file not found in $PATH");
}

TEST_F(KubeletTest, AMissingWorkingDirectoryIsNamed) {
  Json c = Shell("main", "true");
  c["workingDir"] = "/no/such/dir";
  Run(Pod("p", {c}));
  Json state = Status(WaitForPhase("p", "Failed"), "main")["state"]["terminated"];
  EXPECT_THAT(state["message"].get<std::string>(), HasSubstr("/no/such/dir"));
}

TEST_F(KubeletTest, AContainerWithoutCommandIsExplained) {
  Json c = {{"name", "main"}, {"image", "library/thing"}};
  Run(Pod("p", {c}));
  Json state = Status(WaitForPhase("p", "Failed"), "main")["state"]["terminated"];
  EXPECT_EQ(state["reason"], "CreateContainerError");
  EXPECT_THAT(state["message"].get<std::string>(), HasSubstr("library/thing"));
}

TEST_F(KubeletTest, DeletionSendsTermWaitsAndRemovesTheObject) {
  std::string main = "trap 'echo main-term; exit 0' TERM; echo up; while :; do sleep 0.01; done";
  std::string side = "trap 'echo side-term; exit 0' TERM; echo up; while :; do sleep 0.01; done";
  Run(Pod("p", {Shell("main", main)}, {Sidecar("side", side)}));
  WaitForLog("p", "main", "up");
  WaitForLog("p", "side", "up");
  Delete("p");
  WaitGone("p");
  EXPECT_EQ(Log("p", "main"), "up\nmain-term\n");
  EXPECT_EQ(Log("p", "side"), "up\nside-term\n");
}

TEST_F(KubeletTest, WhoIgnoresTermIsKilledAfterTheGracePeriod) {
  Run(Pod("p", {Shell("main", "trap '' TERM; echo up; while :; do sleep 0.01; done")}));
  WaitForLog("p", "main", "up");
  Change("p", [](Json& pod) { pod["metadata"]["finalizers"] = {"ringmaster.dev/look"}; });
  Delete("p", 1);
  Json pod = WaitFor("p", [](const Json& pod) {
    return pod["metadata"].value("deletionGracePeriodSeconds", -1) == 0;
  });
  EXPECT_EQ(Status(pod, "main")["state"]["terminated"]["exitCode"], 137);
  EXPECT_EQ(pod["status"]["phase"], "Failed");
  Change("p", [](Json& pod) { pod["metadata"].erase("finalizers"); });
  WaitGone("p");
}

TEST_F(KubeletTest, ForcedDeletionKillsAtOnce) {
  Run(Pod("p", {Shell("main", "trap '' TERM; echo up; while :; do sleep 0.01; done")}));
  WaitForLog("p", "main", "up");
  Delete("p", 0);
  EXPECT_TRUE(Get("p").is_null());
  auto deadline = Clock::now() + seconds(20);
  while (!ProcessesWithEntry(mark_).empty()) ASSERT_LT(Clock::now(), deadline);
}

TEST_F(KubeletTest, KillPodEndsEverythingAndNothingRestarts) {
  Run(Pod("p", {Shell("main", "echo up; exec sleep 100")}, {Sidecar("side", "exec sleep 100")},
          "Always"));
  WaitForLog("p", "main", "up");
  EXPECT_TRUE(kubelet_->KillPod("default", "p"));
  Json pod = WaitForPhase("p", "Failed");
  EXPECT_EQ(Status(pod, "main")["state"]["terminated"]["exitCode"], 137);
  EXPECT_EQ(Status(pod, "side")["state"]["terminated"]["exitCode"], 137);
  EXPECT_EQ(pod["status"]["reason"], "Killed");
  EXPECT_FALSE(kubelet_->KillPod("default", "nobody"));
}

TEST_F(KubeletTest, WhatThereWasAtItsEndIsAnsweredAfterIt) {
  Run(Pod("p", {Shell("main", "echo up; exec sleep 100")}));
  WaitForLog("p", "main", "up");
  kubelet_->Stop(seconds(0));
  const auto logs = kubelet_->Logs();
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_FALSE(logs[0].log.running);
  EXPECT_FALSE(kubelet_->IsBusy());
}

TEST_F(KubeletTest, APodThatIsMarkedIsKilled) {
  Run(Pod("p", {Shell("main", "echo up; exec sleep 100")}));
  WaitForLog("p", "main", "up");
  Change("p", [](Json& pod) {
    pod["metadata"]["annotations"][api::kLocalKillAnnotation] = pod["metadata"]["uid"];
  });
  EXPECT_EQ(WaitForPhase("p", "Failed")["status"]["reason"], "Killed");
}

TEST_F(KubeletTest, WhatAContainerLeavesBehindDiesWithIt) {
  Run(Pod("p", {Shell("main", "setsid sleep 1000 & (sleep 1000 &) ; exit 0")}));
  WaitForPhase("p", "Succeeded");
  EXPECT_TRUE(ProcessesWithEntry(mark_).empty());
}

TEST_F(KubeletTest, AStoppedProcessIsStillKilled) {
  Run(Pod("p", {Shell("main", "echo up; kill -s STOP $$$$")}));
  WaitForLog("p", "main", "up");
  Delete("p", 1);
  WaitGone("p");
}

TEST_F(KubeletTest, ReadinessComesFromTheProbe) {
  std::string file = (dir_ / "ready").string();
  Json c = Shell("main", "exec sleep 100");
  c["readinessProbe"] = {{"exec", {{"command", {"test", "-e", file}}}}, {"periodSeconds", 1}};
  Run(Pod("p", {c}));
  WaitForPhase("p", "Running");
  EXPECT_EQ(Condition(Get("p"), "Ready"), "False");
  std::ofstream(file) << "x";
  WaitFor("p", [](const Json& pod) { return Condition(pod, "Ready") == "True"; });
}

TEST_F(KubeletTest, AGatedPodWaitsAndAnUnfittingOneSaysWhy) {
  Json gated = Pod("gated", {Shell("main", "true")});
  gated["spec"]["schedulingGates"] = {{{"name", "x/y"}}};
  Run(gated);
  Json big = Pod("big", {Shell("main", "true")});
  big["spec"]["containers"][0]["resources"] = {{"limits", {{"nvidia.com/gpu", 1}}}};
  Run(big);
  Json pod =
      WaitFor("big", [](const Json& pod) { return Condition(pod, "PodScheduled") == "False"; });
  EXPECT_THAT(pod["status"]["conditions"].dump(),
              HasSubstr("0/1 nodes are available: 1 Insufficient nvidia.com/gpu."));
  EXPECT_FALSE(Get("gated")["spec"].contains("nodeName"));
  Change("gated", [](Json& pod) { pod["spec"].erase("schedulingGates"); });
  WaitForPhase("gated", "Succeeded");
}

TEST_F(KubeletTest, StopEndsEveryPodWithinTheGrace) {
  Run(Pod("polite",
          {Shell("main", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done")}));
  Run(Pod("stubborn", {Shell("main", "trap '' TERM; echo up; while :; do sleep 0.01; done")}));
  WaitForLog("polite", "main", "up");
  WaitForLog("stubborn", "main", "up");
  kubelet_->Stop(seconds(3));
  EXPECT_EQ(Log("polite", "main"), "up\nbye\n");
  EXPECT_TRUE(ProcessesWithEntry(mark_).empty());
}

TEST_F(KubeletTest, LogsKnowWhereTheLastStartBegan) {
  std::string file = (dir_ / "once").string();
  Run(Pod("p",
          {Shell("main", "echo line; test -e " + file + " || { touch " + file + "; exit 1; }")}, {},
          "OnFailure"));
  WaitForPhase("p", "Succeeded");
  auto log = kubelet_->LogOf("default", "p", "main");
  ASSERT_TRUE(log.has_value());
  EXPECT_EQ(log->offset, 5u);
  EXPECT_EQ(log->previous, 0u);
  EXPECT_FALSE(log->running);
}

}  // namespace
}  // namespace ringmaster::kubelet
