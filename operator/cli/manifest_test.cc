#include "operator/cli/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/temp_dir.h"

namespace ringmaster::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kGood[] = R"(apiVersion: ringmaster.dev/v1alpha1
kind: HorovodJob
metadata: {name: NAME}
spec:
  elasticPolicy: {minReplicas: 1, maxReplicas: 2}
  worker:
    replicas: 2
    template: {spec: {containers: [{name: worker, image: x, command: [python3, train.py]}]}}
)";

class ManifestTest : public testing::Test {
 protected:
  fs::path Write(const std::string& file, std::string text, const std::string& name = "one") {
    if (auto at = text.find("NAME"); at != std::string::npos) text.replace(at, 4, name);
    std::ofstream(dir_ / file) << text;
    return dir_ / file;
  }
  std::string Error(const fs::path& path) {
    auto jobs = LoadManifests({path});
    if (jobs) return "";
    EXPECT_EQ(jobs.error().code, ExitCode::kUsage);
    return jobs.error().message;
  }
  const support::TempDir temp_;
  const fs::path dir_ = temp_.path();
};

TEST_F(ManifestTest, FolderIsReadInOrderAndJobsGetTheirWorkingDirectory) {
  Write("b.yaml", kGood, "second");
  Write("a.yml", kGood, "first");
  Write("notes.txt", "not a manifest");
  auto jobs = LoadManifests({dir_});
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0]["metadata"]["name"], "first");
  EXPECT_EQ((*jobs)[0]["metadata"]["namespace"], "default");
  EXPECT_EQ((*jobs)[0]["metadata"]["annotations"]["ringmaster.dev/local-working-dir"],
            dir_.string());
}

TEST_F(ManifestTest, AKindThatIsNoTextIsRefused) {
  std::string bad = kGood;
  bad.replace(bad.find("kind: HorovodJob"), 16, "kind: 7");
  EXPECT_THAT(Error(Write("a.yaml", bad)), HasSubstr("can't be run: it has to be HorovodJob"));
}

TEST_F(ManifestTest, EveryWrongFieldOfEveryFileIsNamedAtOnce) {
  std::string bad = kGood;
  bad.replace(bad.find("minReplicas: 1"), 14, "minReplicas: -1");
  fs::path one = Write("one.yaml", bad + "  wrkers: 3\n", "one");
  fs::path two = Write("two.yaml", "kind: Deployment\nmetadata: {name: x}\n");
  auto jobs = LoadManifests({one, two, dir_ / "none.yaml"});
  ASSERT_FALSE(jobs.has_value());
  const std::string& message = jobs.error().message;
  EXPECT_THAT(message, HasSubstr("minReplicas"));
  EXPECT_THAT(message, HasSubstr("wrkers"));
  EXPECT_THAT(message, HasSubstr("two.yaml: kind: \"Deployment\""));
  EXPECT_THAT(message, HasSubstr("none.yaml: No such file"));
}

TEST_F(ManifestTest, ATabInTheIndentationIsNamed) {
  EXPECT_THAT(Error(Write("tab.yaml", "kind: HorovodJob\nspec:\n \tworker: 1\n")),
              HasSubstr("line 3 is indented with a tab"));
  EXPECT_THAT(Error(Write("no.yaml", "kind: a\tb\nspec: [1\n")), testing::Not(HasSubstr("tab")));
}

TEST_F(ManifestTest, AScriptWithoutItsInterpreterIsUnderstood) {
  const fs::path script = Write("train.py", "print(1)\n");
  RunOptions options;
  options.np = 3;
  options.command = {"train.py", "--lr", "1"};
  EXPECT_THAT(JobForCommand(options, dir_).error().message,
              HasSubstr("`ringmaster run -np 3 python3 train.py`"));
  options.command = {"./train.py"};
  EXPECT_FALSE(JobForCommand(options, dir_).has_value());
  fs::permissions(script, fs::perms::owner_all);
  EXPECT_TRUE(JobForCommand(options, dir_).has_value()) << "it can be run by itself";
}

TEST_F(ManifestTest, AProgramIsNoManifestAndItIsSaidWhatToType) {
  const fs::path program = Write("solve",
                                 "\x7f"
                                 "ELF\x01");
  fs::permissions(program, fs::perms::owner_all);
  EXPECT_EQ(Error(program), program.string() +
                                ": this is a program and no manifest; to run it as a command type "
                                "`ringmaster run -np N " +
                                program.string() + "`");
  EXPECT_THAT(Error("hostname"), HasSubstr("type `ringmaster run -np N hostname`"));
  EXPECT_THAT(Error(dir_ / "none.yaml"), testing::Not(HasSubstr("-np")));
  const fs::path manifest = Write("a.yaml", kGood);
  fs::permissions(manifest, fs::perms::owner_all);
  EXPECT_EQ(Error(manifest), "") << "on some file systems every file can be executed";
}

TEST_F(ManifestTest, SaysWhatIsWrongWithAFileAsSuch) {
  EXPECT_THAT(Error(Write("empty.yaml", "")), HasSubstr("empty"));
  EXPECT_THAT(Error(Write("tab.yaml", "a: [1\nb: 2\n")), HasSubstr("line"));
  EXPECT_NE(Error(Write("list.yaml", "- 1\n")), "");
  fs::create_directory(dir_ / "void");
  EXPECT_THAT(Error(dir_ / "void"), HasSubstr("no *.yaml"));
  fs::create_symlink("round.yaml", dir_ / "void/round.yaml");
  EXPECT_THAT(Error(dir_ / "void"), HasSubstr("no *.yaml")) << "a link that leads to itself";
}

TEST_F(ManifestTest, TwoJobsOfOneNameAreRefused) {
  Write("a.yaml", kGood, "twin");
  Write("b.yaml", kGood, "twin");
  EXPECT_THAT(Error(dir_), HasSubstr("two jobs are called \"twin\""));
}

TEST(JobForCommandTest, IsOnePodOfNSlotsUnlessARangeIsAskedFor) {
  RunOptions options;
  options.np = 4;
  options.command = {"python3", "My_Train.py", "--lr", "0.1"};
  auto job = JobForCommand(options, "/work");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ((*job)["metadata"]["name"], "my-train");
  EXPECT_EQ((*job)["spec"]["slotsPerWorker"], 4);
  EXPECT_EQ((*job)["spec"]["worker"]["replicas"], 1);
  options.min_np = 2;
  options.max_np = 6;
  job = JobForCommand(options, "/work");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ((*job)["spec"]["slotsPerWorker"], 1);
  EXPECT_EQ((*job)["spec"]["worker"]["replicas"], 4);
  EXPECT_EQ((*job)["spec"]["elasticPolicy"]["minReplicas"], 2);
  EXPECT_EQ((*job)["spec"]["elasticPolicy"]["maxReplicas"], 6);
}

TEST(JobForCommandTest, OnSeveralHostsAllPodsAreNeededUnlessARangeIsAskedFor) {
  RunOptions options;
  options.np = 4;
  options.hosts = {{"a", 2}, {"b", 2}};
  options.command = {"true"};
  auto job = JobForCommand(options, "/work");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ((*job)["spec"]["worker"]["replicas"], 2);
  EXPECT_EQ((*job)["spec"]["elasticPolicy"]["minReplicas"], 2);
  EXPECT_EQ((*job)["spec"]["elasticPolicy"]["maxReplicas"], 2);
  options.min_np = 1;
  job = JobForCommand(options, "/work");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ((*job)["spec"]["elasticPolicy"]["minReplicas"], 1);
}

TEST(JobForCommandTest, WhatIsSaidOfTheJobStandsInItsSpec) {
  RunOptions options;
  options.np = 2;
  options.command = {"true"};
  auto job = JobForCommand(options, "/work");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_FALSE((*job)["spec"].contains("initTimeoutSeconds"));
  options.init_timeout = 30;
  options.backoff_limit = 0;
  options.fusion_threshold = 0;
  options.backend = "None";
  job = JobForCommand(options, "/work");
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ((*job)["spec"]["initTimeoutSeconds"], 30);
  EXPECT_EQ((*job)["spec"]["runPolicy"]["backoffLimit"], 0);
  EXPECT_EQ((*job)["spec"]["collectives"]["fusionThresholdBytes"], 0);
  EXPECT_EQ((*job)["spec"]["collectives"]["backend"], "None");
}

TEST(JobForCommandTest, NamesAreWhatKubernetesTakes) {
  EXPECT_EQ(NameForCommand({"python3", "-m", "x"}), "python3");
  EXPECT_EQ(NameForCommand({"./2nd_try.py"}), "job-2nd-try");
  EXPECT_EQ(NameForCommand({"/bin/___"}), "job");
  EXPECT_EQ(NameForCommand({std::string(90, 'a')}).size(), 40u);
}

TEST(JobForCommandTest, ACommandThatWasQuotedAsAWholeIsUnderstood) {
  const auto job = JobForCommand({.np = 2, .command = {"python3 train.py"}}, "/");
  ASSERT_FALSE(job.has_value());
  EXPECT_EQ(job.error().code, ExitCode::kUsage);
  EXPECT_EQ(job.error().message,
            "there is no program \"python3 train.py\"; did you mean `ringmaster run -np 2 python3 "
            "train.py`, without quotes?");
  const support::TempDir temporary;
  std::ofstream(temporary.path() / "my program") << "";
  EXPECT_TRUE(JobForCommand({.np = 2, .command = {"./my program"}}, temporary.path()).has_value());
}

}  // namespace
}  // namespace ringmaster::cli
