#include "operator/cli/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <optional>

namespace ringmaster::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() {
    char name[] = "/tmp/rdt-XXXXXX";
    paths_.runtime_dir = mkdtemp(name);
  }
  ~RunDirectoryTest() override { fs::remove_all(paths_.runtime_dir); }
  std::optional<RunDirectory> Make(const std::string& id, const fs::path& path = "") {
    auto made = RunDirectory::Create(path, paths_, id);
    if (!made) {
      message_ = made.error().message;
      return std::nullopt;
    }
    return std::move(*made);
  }
  RunPaths paths_;
  std::string message_;
};

TEST_F(RunDirectoryTest, IsPrivateAndAliveUntilItsOwnerEnds) {
  fs::path path;
  {
    auto run = Make("r1");
    ASSERT_TRUE(run.has_value()) << message_;
    path = run->path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    EXPECT_TRUE(IsAlive(path));
  }
  EXPECT_FALSE(IsAlive(path));
}

TEST_F(RunDirectoryTest, NewestLivingRunSkipsTheDead) {
  EXPECT_THAT(NewestLivingRun(paths_).error().message, HasSubstr("ringmaster run"));
  auto first = Make("r1");
  { auto dead = Make("r2"); }
  EXPECT_EQ(NewestLivingRun(paths_).value(), first->path());
}

TEST_F(RunDirectoryTest, SecondRunInTheSameDirectoryIsRefused) {
  auto first = Make("r1", paths_.runtime_dir / "mine");
  ASSERT_TRUE(first.has_value()) << message_;
  EXPECT_FALSE(Make("r2", paths_.runtime_dir / "mine").has_value());
  EXPECT_THAT(message_, HasSubstr("another run is alive"));
}

TEST_F(RunDirectoryTest, PathTooLongForSocketsIsRefusedAtOnce) {
  EXPECT_FALSE(Make("r1", paths_.runtime_dir / std::string(60, 'x')).has_value());
  EXPECT_THAT(message_, HasSubstr("too long"));
}

TEST_F(RunDirectoryTest, CleanRemovesOursAndLeavesTheLogsOfANamedOne) {
  auto ours = Make("r1");
  RunDirectory::Clean(ours->path(), true, false);
  EXPECT_FALSE(fs::exists(ours->path()));

  auto named = Make("r2", paths_.runtime_dir / "mine");
  fs::create_directory(named->path() / "logs");
  std::ofstream(named->path() / "kubeconfig") << "secret";
  RunDirectory::Clean(named->path(), false, false);
  EXPECT_TRUE(fs::exists(named->path() / "logs"));
  EXPECT_FALSE(fs::exists(named->path() / "kubeconfig"));
}

}  // namespace
}  // namespace ringmaster::cli
