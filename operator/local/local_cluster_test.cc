// The whole local cluster through its kubeconfig, and its ends: in order, and by SIGKILL.
#include "operator/local/local_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "operator/kube/kube_client.h"
#include "operator/kubelet/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/until.h"

namespace ringmaster::local {
namespace {

using kube::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::Until;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class LocalClusterTest : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(dir_); }

  std::unique_ptr<LocalCluster> Start(int port = 0) {
    auto cluster = LocalCluster::Start({.run_dir = dir_, .bin_dir = dir_, .port = port});
    EXPECT_TRUE(cluster.has_value()) << cluster.error().message;
    return cluster ? std::move(*cluster) : nullptr;
  }
  static std::unique_ptr<kube::KubeApi> Connect(const fs::path& kubeconfig) {
    auto api = kube::ConnectByKubeconfig(kubeconfig);
    EXPECT_TRUE(api.has_value()) << api.error().message;
    return api ? std::move(*api) : nullptr;
  }
  static Json Pod(const std::string& name, const std::string& script) {
    return {{"metadata", {{"name", name}}},
            {"spec",
             {{"restartPolicy", "Never"},
              {"containers",
               {{{"name", "main"}, {"image", "any"}, {"command", {"sh", "-c", script}}}}}}}};
  }
  static bool PhaseIs(kube::KubeApi& api, const std::string& pod, const std::string& phase) {
    auto got = api.Get(kube::Pods(), "default", pod);
    return got && (*got)["status"].value("phase", "") == phase;
  }

  support::TempDir temporary_;
  const fs::path dir_ = temporary_.path();
};

TEST_F(LocalClusterTest, APodRunsAndItsLogIsRead) {
  auto cluster = Start();
  ASSERT_NE(cluster, nullptr);
  struct stat info {};
  ASSERT_EQ(stat(cluster->kubeconfig().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  auto api = Connect(cluster->kubeconfig());
  ASSERT_TRUE(api->Create(kube::Pods(), "default", Pod("p", "echo hello")));
  ASSERT_TRUE(Until([&] { return PhaseIs(*api, "p", "Succeeded"); }));
  std::string text;
  auto ok = api->PodLog("default", "p", "main", true,
                        [&](std::string_view part) {
                          text += part;
                          return true;
                        },
                        {});
  EXPECT_TRUE(ok.has_value()) << ok.error().message;
  EXPECT_EQ(text, "hello\n");
}

TEST_F(LocalClusterTest, AFollowedLogEndsWithItsContainer) {
  auto cluster = Start();
  auto api = Connect(cluster->kubeconfig());
  ASSERT_TRUE(api->Create(kube::Pods(), "default",
                          Pod("p", "echo one; until test -e " + (dir_ / "go").string() +
                                       "; do sleep 0.01; done; echo two")));
  ASSERT_TRUE(Until([&] { return PhaseIs(*api, "p", "Running"); }));
  std::string text;
  auto ok = api->PodLog("default", "p", "", true,
                        [&](std::string_view part) {
                          text += part;
                          std::ofstream(dir_ / "go") << "x";
                          return true;
                        },
                        {});
  EXPECT_TRUE(ok.has_value()) << ok.error().message;
  EXPECT_EQ(text, "one\ntwo\n");
}

TEST_F(LocalClusterTest, APortInUseIsNamed) {
  auto first = Start();
  auto config = kube::LoadKubeconfig(first->kubeconfig());
  ASSERT_TRUE(config.has_value());
  const support::TempDir other_directory;
  const fs::path& other = other_directory.path();
  auto second = LocalCluster::Start({.run_dir = other, .bin_dir = other, .port = config->port});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, kube::ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr("127.0.0.1:" + std::to_string(config->port)));
}

TEST_F(LocalClusterTest, AMissingRunDirectoryIsNamed) {
  auto cluster = LocalCluster::Start({.run_dir = dir_ / "nowhere", .bin_dir = dir_});
  ASSERT_FALSE(cluster.has_value());
  EXPECT_THAT(cluster.error().message, HasSubstr((dir_ / "nowhere").string()));
}

TEST_F(LocalClusterTest, AWrongTokenIsForbidden) {
  auto cluster = Start();
  auto config = kube::LoadKubeconfig(cluster->kubeconfig());
  config->token = "wrong";
  auto api = std::move(*kube::MakeKubeClient(*config));
  auto got = api->Get(kube::Pods(), "default", "p");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, kube::ErrorCode::kForbidden);
  EXPECT_EQ(got.error().http_status, 401);
}

TEST_F(LocalClusterTest, ACertificateOfAnotherAuthorityIsNotTrusted) {
  auto cluster = Start();
  auto config = kube::LoadKubeconfig(cluster->kubeconfig());
  const support::TempDir other_directory;
  const fs::path& other_dir = other_directory.path();
  auto other = LocalCluster::Start({.run_dir = other_dir, .bin_dir = other_dir});
  ASSERT_TRUE(other.has_value());
  config->ca_pem = kube::LoadKubeconfig((*other)->kubeconfig())->ca_pem;
  auto api = std::move(*kube::MakeKubeClient(*config));
  auto got = api->Get(kube::Pods(), "default", "p");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, kube::ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message,
              HasSubstr("is not signed by the configured certificate authority"));
  other->reset();
}

TEST_F(LocalClusterTest, AHostThatTheCertificateDoesntNameIsNotTrusted) {
  auto cluster = Start();
  auto config = kube::LoadKubeconfig(cluster->kubeconfig());
  config->host = "127.0.0.2";  // the same machine by another name
  config->tls_server_name = "example.org";
  config->host = "127.0.0.1";
  auto api = std::move(*kube::MakeKubeClient(*config));
  auto got = api->Get(kube::Pods(), "default", "p");
  ASSERT_FALSE(got.has_value());
  EXPECT_THAT(got.error().message, HasSubstr("is not for \"example.org\""));
}

TEST_F(LocalClusterTest, AServerThatStopsIsUnavailableAndItsSuccessorIsListedAgain) {
  auto cluster = Start();
  fs::path kubeconfig = cluster->kubeconfig();
  auto config = kube::LoadKubeconfig(kubeconfig);
  auto api = std::move(*kube::MakeKubeClient(*config));
  auto list = api->ListAll(kube::Pods(), "default", {});
  ASSERT_TRUE(list.has_value());
  std::atomic<bool> began = false;
  kube::Result<void> watched;
  std::thread watcher([&] {
    kube::WatchOptions options;
    watched = api->Watch(kube::Namespaces(), "", options,
                         [&](const kube::WatchEvent&) { return began = true; }, {});
  });
  ASSERT_TRUE(Until([&] { return began.load(); }));
  cluster->Stop(milliseconds(0));
  watcher.join();  // the watch ends, it doesn't hang
  EXPECT_FALSE(fs::exists(kubeconfig));
  auto got = api->Get(kube::Pods(), "default", "p");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, kube::ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr("can't connect to https://127.0.0.1:"));

  auto next = Start();
  api = Connect(next->kubeconfig());
  kube::WatchOptions old;
  old.resource_version = "99999999";
  auto gone =
      api->Watch(kube::Pods(), "default", old, [](const kube::WatchEvent&) { return true; }, {});
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, kube::ErrorCode::kGone);
}

TEST_F(LocalClusterTest, KillPodReportsTheContainersAsTerminated) {
  auto cluster = Start();
  auto api = Connect(cluster->kubeconfig());
  ASSERT_TRUE(api->Create(kube::Pods(), "default", Pod("p", "exec sleep 100")));
  ASSERT_TRUE(Until([&] { return PhaseIs(*api, "p", "Running"); }));
  EXPECT_TRUE(cluster->KillPod("default", "p").has_value());
  EXPECT_TRUE(Until([&] { return PhaseIs(*api, "p", "Failed"); }));
  auto missing = cluster->KillPod("default", "q");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, kube::ErrorCode::kNotFound);
}

// A process with a cluster is killed: what its containers have started must go, and the run's own
// files. The directory may be the user's: everything else in it stays, and so do the logs.
TEST_F(LocalClusterTest, OfAKilledProcessOnlyLogsAreLeftAndWhatWasNotTheRuns) {
  fs::create_directories(dir_ / "data");
  for (const char* file : {"weights.pt", "data/mnist.csv", "run.lock"}) {
    std::ofstream(dir_ / file) << "mine";
  }
  std::string mark = "CLUSTER_TEST_MARK=" + dir_.filename().string();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    auto cluster = LocalCluster::Start({.run_dir = dir_, .bin_dir = dir_});
    auto api = kube::ConnectByKubeconfig((*cluster)->kubeconfig());
    Json pod = Pod("p", "setsid sleep 1000 & trap '' TERM; while :; do sleep 1000; done");
    pod["spec"]["containers"][0]["env"] = {
        {{"name", "CLUSTER_TEST_MARK"}, {"value", dir_.filename().string()}}};
    if (!(*api)->Create(kube::Pods(), "default", pod)) _exit(1);
    if (!Until([&] { return kubelet::ProcessesWithEntry(mark).size() >= 3; })) _exit(1);
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char word;
  close(ready[1]);
  ASSERT_EQ(read(ready[0], &word, 1), 1) << "the child didn't come up";
  // One may have been counted twice, while it was just being forked.
  EXPECT_TRUE(Until([&] { return kubelet::ProcessesWithEntry(mark).size() >= 3; }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Until(
      [&] { return kubelet::ProcessesWithEntry(mark).empty() && !fs::exists(dir_ / "run.lock"); }));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(dir_)) left.push_back(entry.path().filename());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre("data", "weights.pt", "logs"));
  EXPECT_TRUE(fs::exists(dir_ / "data/mnist.csv"));
  EXPECT_TRUE(fs::exists(dir_ / "logs/p/main.log"));
  close(ready[0]);
}

}  // namespace
}  // namespace ringmaster::local
