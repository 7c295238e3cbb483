// Two builds in one job: an operator is upgraded and rolled back while a job trains, and pods with
// sidecars of both versions train together. The other build is this tree under another version;
// RINGMASTER_OTHER_BIN names the folder of a real one (such as ringmaster-operator, -sidecar and
// -launcher of the previous release) to use instead.
#include <gmock/gmock.h>
#include <signal.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "operator/api/testing/job_object.h"
#include "operator/app/testing/cluster_e2e.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using support::Until;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

fs::path OtherBuild() {
  const char* real = std::getenv("RINGMASTER_OTHER_BIN");
  return real != nullptr ? fs::path(real) : fs::path(RM_OTHER_BIN_DIR);
}

class UpgradeE2e : public ClusterE2e {
 protected:
  void SetUp() override {
    for (const char* sub : {"out", "bin"}) fs::create_directory(dir_ / sub);
    UsePodsOf(OtherBuild());
    StartCluster({.bin_dir = dir_ / "bin"});
  }

  // Sets the sidecar and launcher of pods that are created from now on.
  void UsePodsOf(const fs::path& build) const {
    for (const char* program : {"ringmaster-sidecar", "ringmaster-launcher"}) {
      fs::remove(dir_ / "bin" / program);
      const bool has = fs::exists(build / program);
      fs::create_symlink((has ? build : fs::path(RM_BIN_DIR)) / program, dir_ / "bin" / program);
    }
  }
  std::unique_ptr<RunningOperator> StartOperator(const fs::path& build) {
    return std::make_unique<RunningOperator>(
        RunningOperator::Options{.name = "op-" + std::to_string(++operators_),
                                 .dir = dir_,
                                 .flags = OperatorFlags(),
                                 .program = build / "ringmaster-operator"});
  }
  // Replaces the operator as a Deployment with one replica does: the old one ends first.
  void Replace(std::unique_ptr<RunningOperator>* op, const fs::path& build) {
    (*op)->Signal(SIGTERM);
    EXPECT_EQ((*op)->Exited(), 0);
    *op = StartOperator(build);
  }
  void Scale(int replicas) {
    const auto patched = api_->Patch(kube::HorovodJobs(), "default", "digits",
                                     {{"spec", {{"worker", {{"replicas", replicas}}}}}}, {});
    ASSERT_TRUE(patched) << patched.error().message;
  }
  Json Status() { return StatusOf("digits"); }
  // All workers of a world of this size train, in a view that the operator has seen.
  bool Trains(int workers) {
    return Until([&] { return Status().value("worldSize", 0) == workers; }) && StepsGoOn();
  }
  bool StepsGoOn() { return ClusterE2e::StepsGoOn(dir_ / "out"); }
  std::string Why() const {
    const std::string command = std::string(RM_BIN_DIR) + "/ringmaster why digits --kubeconfig " +
                                cluster_->kubeconfig().string() + " 2>&1";
    std::string text;
    FILE* const out = popen(command.c_str(), "r");
    std::array<char, 4096> part;
    while (std::fgets(part.data(), part.size(), out) != nullptr) text += part.data();
    pclose(out);
    return text;
  }

  const fs::path new_build_ = RM_BIN_DIR;
  int operators_ = 0;
};

TEST_F(UpgradeE2e, AJobTrainsOnThroughAnUpgradeAndBackWithPodsOfBothVersions) {
  auto op = StartOperator(OtherBuild());
  Apply(api::testing::JobObject("digits", 2, 1,
                                {WORKER_BINARY, (dir_ / "out").string(), "--sleep-ms", "20"}));
  ASSERT_TRUE(Trains(2));
  const auto epoch = Status()["epoch"];
  EXPECT_THAT(Why(), Not(HasSubstr("several versions")));

  Replace(&op, new_build_);
  UsePodsOf(new_build_);
  ASSERT_TRUE(Until([&] { return op->Metric("ringmaster_operator_sidecars") == 2; }))
      << "the sidecars of before have found the new operator";
  EXPECT_TRUE(StepsGoOn());
  EXPECT_EQ(Status()["epoch"], epoch) << "no view has changed";

  Scale(3);
  ASSERT_TRUE(Trains(3)) << "a new pod among older ones";
  const std::string why = Why();
  EXPECT_THAT(why, HasSubstr("its pods have sidecars of several versions: "));
  EXPECT_THAT(why, HasSubstr("(digits-worker-2)"));
  ASSERT_TRUE(cluster_->KillPod("default", "digits-worker-0"));
  ASSERT_TRUE(Until([&] { return Status().value("podsReplaced", 0) == 1; }));
  EXPECT_TRUE(Trains(3)) << "the others have settled the death of an older one";

  Replace(&op, OtherBuild());
  ASSERT_TRUE(Until([&] { return op->Metric("ringmaster_operator_sidecars") == 3; }));
  Scale(2);
  EXPECT_TRUE(Trains(2)) << "the older operator goes on with newer pods";
  EXPECT_EQ(Status().value("state", ""), "Running");
}

}  // namespace
}  // namespace ringmaster::app
