// A local cluster with real sidecars and workers, for tests that start operators beside it. Workers
// are elastic_worker, which writes a line to a file of its own for each step.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/app/testing/running_operator.h"
#include "operator/kube/kube_client.h"
#include "operator/local/local_cluster.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::app {

class ClusterE2e : public testing::Test {
 protected:
  static constexpr char kGpu[] = "example.com/gpu";

  // Sets the run directory; the caller sets the other options.
  void StartCluster(local::LocalClusterOptions options) {
    options.run_dir = dir_ / "run";
    std::filesystem::create_directory(options.run_dir);
    auto cluster = local::LocalCluster::Start(options);
    ASSERT_TRUE(cluster) << cluster.error().message;
    cluster_ = std::move(*cluster);
    auto api = kube::ConnectByKubeconfig(cluster_->kubeconfig());
    ASSERT_TRUE(api) << api.error().message;
    api_ = std::move(*api);
  }
  // Prints the log of each pod if a test has failed.
  void TearDown() override {
    if (HasFailure()) PrintLogs();
    if (cluster_ != nullptr) cluster_->Stop(std::chrono::seconds(2));
  }

  // All operators of a test have the same address for sidecars.
  std::vector<std::string> OperatorFlags(std::vector<std::string> more = {}) const {
    std::vector<std::string> flags = {"--kubeconfig", cluster_->kubeconfig().string(), "--listen",
                                      "unix:" + (dir_ / "op.sock").string()};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  // Sets the GPUs of the only node.
  void SetGpus(int count) {
    const auto nodes = api_->ListAll(kube::Nodes(), "", {});
    ASSERT_TRUE(nodes && nodes->items.size() == 1);
    const std::string node = nodes->items.front()["metadata"]["name"];
    ASSERT_TRUE(api_->Patch(kube::Nodes(), "", node,
                            {{"status", {{"allocatable", {{kGpu, std::to_string(count)}}}}}},
                            {.subresource = "status"}));
  }
  void Apply(const kube::Json& job) {
    const auto created = api_->Create(kube::HorovodJobs(), "default", job);
    ASSERT_TRUE(created) << created.error().message;
  }
  kube::Json StatusOf(const std::string& job) {
    const auto found = api_->Get(kube::HorovodJobs(), "default", job);
    return found ? found->value("status", kube::Json::object()) : kube::Json::object();
  }
  // The newest step of a worker that writes to this directory; 0: none.
  static int LastStep(const std::filesystem::path& out) {
    int newest = 0;
    for (const auto& entry : std::filesystem::directory_iterator(out)) {
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);)
        newest = std::max(newest, std::atoi(line.c_str()));
    }
    return newest;
  }
  static bool StepsGoOn(const std::filesystem::path& out, int more = 10) {
    const int before = LastStep(out);
    return support::Until([&] { return LastStep(out) >= before + more; });
  }
  void PrintLogs() const {
    std::error_code none;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(dir_ / "run" / "logs", none)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path());
      std::cerr << "---- " << entry.path().string() << "\n" << file.rdbuf();
    }
  }

  support::TempDir temporary_;
  const std::filesystem::path dir_ = temporary_.path();
  std::unique_ptr<local::LocalCluster> cluster_;
  std::unique_ptr<kube::KubeApi> api_;
};

}  // namespace ringmaster::app
