#include "operator/cli/kept_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "operator/api/labels.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;

Json Job(const char* name) { return {{"metadata", {{"name", name}}}}; }

std::string DirOf(const Json& job) {
  return job["metadata"]["annotations"][api::kLocalOutputDirAnnotation];
}

TEST(KeptOutputTest, OneJobGetsTheDirectoryAndSeveralAFolderEach) {
  const support::TempDir temporary;
  std::vector<Json> one = {Job("a")}, two = {Job("a"), Job("b")};
  ASSERT_TRUE(PrepareOutput(temporary.path() / "out/deep", &one));
  EXPECT_EQ(DirOf(one[0]), (temporary.path() / "out/deep").string());
  EXPECT_TRUE(fs::is_directory(temporary.path() / "out/deep"));
  ASSERT_TRUE(PrepareOutput(temporary.path(), &two));
  EXPECT_EQ(DirOf(two[1]), (temporary.path() / "b").string());
}

TEST(KeptOutputTest, WhatAnEarlierRunHasKeptGoesAndNothingElse) {
  const support::TempDir temporary;
  for (const char* folder : {"rank.7", "rank.8", "plots"}) {
    fs::create_directories(temporary.path() / folder);
    std::ofstream(temporary.path() / folder / "stdout") << "old";
  }
  std::ofstream(temporary.path() / "rank.8/notes") << "mine";
  std::vector<Json> jobs = {Job("a")};
  ASSERT_TRUE(PrepareOutput(temporary.path(), &jobs));
  EXPECT_TRUE(fs::exists(temporary.path() / "rank.7/stdout")) << "the run may not begin";
  RemoveEarlierOutput(jobs);
  EXPECT_FALSE(fs::exists(temporary.path() / "rank.7"));
  EXPECT_FALSE(fs::exists(temporary.path() / "rank.8/stdout"));
  EXPECT_TRUE(fs::exists(temporary.path() / "rank.8/notes"));
  EXPECT_TRUE(fs::exists(temporary.path() / "plots/stdout"));
}

TEST(KeptOutputTest, ADirectoryThatCannotBeMadeIsSaidBeforeTheRun) {
  std::vector<Json> jobs = {Job("a")};
  const auto prepared = PrepareOutput("/dev/null/out", &jobs);
  ASSERT_FALSE(prepared.has_value());
  EXPECT_EQ(prepared.error().code, ExitCode::kUsage);
  EXPECT_THAT(prepared.error().message, HasSubstr("--output-filename /dev/null/out"));
}

TEST(KeptOutputTest, NothingIsAskedOfJobsWithoutTheOption) {
  std::vector<Json> jobs = {Job("a")};
  ASSERT_TRUE(PrepareOutput("", &jobs));
  EXPECT_FALSE(jobs[0]["metadata"].contains("annotations"));
}

}  // namespace
}  // namespace ringmaster::cli
