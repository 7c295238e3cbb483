#include "operator/cli/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>

#include "tests/support/temp_dir.h"

namespace {
int flock_error = 0;  // what flock fails with in this program; 0: it is the kernel's
}  // namespace

// Comes in the place of the C library's, because no file system without locks is at hand.
extern "C" int flock(int fd, int operation) noexcept {
  if (flock_error == 0) return static_cast<int>(syscall(SYS_flock, fd, operation));
  errno = flock_error;
  return -1;
}

namespace ringmaster::cli {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() { paths_.runs = base_; }
  std::optional<RunDirectory> Make(const std::string& id, const fs::path& path = "") {
    auto made = RunDirectory::Create(path, paths_, id);
    if (!made) {
      message_ = made.error().message;
      return std::nullopt;
    }
    return std::move(*made);
  }
  const support::TempDir temporary_;
  const fs::path base_ = temporary_.path();
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
    EXPECT_FALSE(HasEnded(path));
  }
  EXPECT_FALSE(IsAlive(path));
  EXPECT_TRUE(HasEnded(path));
}

TEST_F(RunDirectoryTest, LivingRunsAreWithoutTheDead) {
  EXPECT_TRUE(LivingRuns(paths_)->empty());
  auto first = Make("r1");
  { auto dead = Make("r2"); }
  EXPECT_THAT(LivingRuns(paths_).value(), testing::ElementsAre(first->path()));
}

TEST_F(RunDirectoryTest, TheSessionsEndOfItsUserRemovesNoRun) {
  paths_ = {.runtime_dir = base_ / "xdg"};
  EXPECT_EQ(RunsFolder(paths_), fmt::format("/tmp/ringmaster-{}", getuid()));
}

TEST_F(RunDirectoryTest, ALivingRunOfAnEarlierVersionIsFound) {
  paths_.runtime_dir = base_ / "xdg";
  auto mine = Make("r1");
  const fs::path earlier = base_ / "xdg/ringmaster/r2";
  auto run = Make("r2", earlier);
  ASSERT_TRUE(mine.has_value() && run.has_value()) << message_;
  EXPECT_THAT(LivingRuns(paths_).value(), testing::UnorderedElementsAre(mine->path(), earlier));
}

TEST_F(RunDirectoryTest, WhileARunLivesItsDirectoryIsLockedAgainstTheCleaningOfTmp) {
  fs::path path;
  const auto locked = [&] {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool refused = flock(fd, LOCK_EX | LOCK_NB) != 0;
    close(fd);
    return refused;
  };
  {
    auto run = Make("r1");
    ASSERT_TRUE(run.has_value()) << message_;
    path = run->path();
    EXPECT_TRUE(locked());
  }
  EXPECT_FALSE(locked());
}

TEST_F(RunDirectoryTest, ARemovedDirectoryIsNoticedThoughSomebodyMakesItAnew) {
  auto run = Make("r1");
  EXPECT_TRUE(IsThere(run->path()));
  fs::remove_all(run->path());
  fs::create_directories(run->path() / "logs");
  EXPECT_FALSE(IsThere(run->path()));
}

TEST_F(RunDirectoryTest, AFileSystemWithTooLittleRoomIsRefused) {
  EXPECT_TRUE(CheckSpace(base_, 1).has_value());
  const auto full = CheckSpace(base_, UINTMAX_MAX);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, ExitCode::kMachineLacks);
  EXPECT_THAT(full.error().message,
              AllOf(HasSubstr("the file system of " + base_.string() + " is full"),
                    HasSubstr("--run-dir")));
}

TEST_F(RunDirectoryTest, ANodesDirectoryIsNoRun) {
  paths_ = {};
  RunPaths nodes{.of_nodes = true};
  auto node = RunDirectory::Create("", nodes, fmt::format("test-{}", getpid()));
  ASSERT_TRUE(node.has_value()) << node.error().message;
  EXPECT_THAT(LivingRuns(paths_).value(), Not(Contains(node->path())));
  EXPECT_THAT(LivingRuns(nodes).value(), Contains(node->path()));
  RunDirectory::Clean(node->path(), node->ours(), false);
}

TEST_F(RunDirectoryTest, ADirectoryWithThingsThatARunWouldTakeAwayIsRefused) {
  const fs::path mine = base_ / "mine";
  fs::create_directories(mine / "pods");
  std::ofstream(mine / "pods/of_a_whale.csv") << "data";
  EXPECT_FALSE(Make("r1", mine).has_value());
  EXPECT_THAT(message_, HasSubstr("\"pods\" that is no run's"));
  EXPECT_TRUE(fs::exists(mine / "pods/of_a_whale.csv"));
}

TEST_F(RunDirectoryTest, WhatAKilledRunHasLeftAndTheLogsOfAnEndedOneAreNoHindrance) {
  const fs::path mine = base_ / "mine";
  { auto killed = Make("r1", mine); }
  fs::create_directories(mine / "pods");
  { EXPECT_TRUE(Make("r2", mine).has_value()) << message_; }
  fs::create_directories(mine / "logs");
  RunDirectory::Clean(mine, false, false);
  EXPECT_FALSE(fs::exists(mine / "pods"));
  EXPECT_TRUE(fs::exists(mine / "logs"));
  EXPECT_TRUE(Make("r3", mine).has_value()) << message_;
}

TEST_F(RunDirectoryTest, TheLogsOfTheRunThatEndedLastAreFound) {
  EXPECT_EQ(LogsOfLastRun(paths_), "");
  for (const char* id : {"r1", "r2"}) {
    auto run = Make(id);
    fs::create_directories(run->path() / "logs");
    RunDirectory::Clean(run->path(), true, true);
  }
  const auto later = fs::file_time_type::clock::now() + std::chrono::hours(1);
  fs::last_write_time(RunsFolder(paths_) / "r1", later);
  EXPECT_EQ(LogsOfLastRun(paths_), RunsFolder(paths_) / "r1/logs");
}

TEST_F(RunDirectoryTest, SecondRunInTheSameDirectoryIsRefused) {
  auto first = Make("r1", base_ / "mine");
  ASSERT_TRUE(first.has_value()) << message_;
  EXPECT_FALSE(Make("r2", base_ / "mine").has_value());
  EXPECT_THAT(message_, HasSubstr("another run is alive"));
}

class FileSystemWithoutLocks : public RunDirectoryTest {
 protected:
  FileSystemWithoutLocks() { flock_error = ENOLCK; }
  ~FileSystemWithoutLocks() override { flock_error = 0; }
};

TEST_F(FileSystemWithoutLocks, IsNamedWithTheReasonInsteadOfARunThatIsNotThere) {
  EXPECT_FALSE(Make("r1", base_ / "mine").has_value());
  EXPECT_THAT(message_, AllOf(HasSubstr((base_ / "mine").string()), HasSubstr("No locks available"),
                              HasSubstr("--run-dir"), Not(HasSubstr("another run"))));
  EXPECT_TRUE(fs::is_empty(base_ / "mine")) << "a lock that nobody holds looks like a killed run";
  EXPECT_FALSE(Make("r2").has_value());
  EXPECT_THAT(message_, HasSubstr("$RINGMASTER_RUNS"));
  EXPECT_TRUE(fs::is_empty(RunsFolder(paths_)));
}

TEST_F(FileSystemWithoutLocks, HasNoRunThatIsKnownToLiveOrToHaveEnded) {
  flock_error = 0;
  auto run = Make("r1");
  ASSERT_TRUE(run.has_value()) << message_;
  flock_error = ENOLCK;
  EXPECT_FALSE(IsAlive(run->path()));
  EXPECT_FALSE(HasEnded(run->path()));
  const auto alive = AskAlive(run->path());
  ASSERT_FALSE(alive.has_value());
  EXPECT_THAT(alive.error().message, HasSubstr("No locks available"));
  EXPECT_TRUE(LivingRuns(paths_)->empty());
  RunDirectory::RemoveOld(paths_, 0);
  EXPECT_TRUE(fs::exists(run->path())) << "it may be alive";
}

// Directories that another user could have made, or could write to.
class StrangersDirectory : public RunDirectoryTest {
 protected:
  // A run neither begins in this directory nor is looked for there.
  void ExpectRefused(const std::string& why) {
    EXPECT_FALSE(Make("r1").has_value());
    EXPECT_THAT(message_, AllOf(HasSubstr(folder_.string()), HasSubstr(why)));
    EXPECT_THAT(LivingRuns(paths_).error().message, HasSubstr(why));
    EXPECT_FALSE(fs::exists(folder_ / "r1"));
    EXPECT_FALSE(Make("r1", folder_).has_value()) << "named by hand";
    EXPECT_FALSE(Make("r1", folder_ / "").has_value()) << "with a slash behind it";
    EXPECT_THAT(CheckOwn(folder_).error().message, HasSubstr(why));
  }
  const fs::path folder_ = RunsFolder(paths_);
};

TEST_F(StrangersDirectory, OfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes directories of others";
  fs::create_directory(folder_);
  ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
  ExpectRefused("belongs to user 65534");
}

TEST_F(StrangersDirectory, ThatOthersMayWriteIsRefused) {
  for (const mode_t mode : {0777, 0730, 0702}) {
    fs::create_directory(folder_);
    ASSERT_EQ(chmod(folder_.c_str(), mode), 0);
    ExpectRefused("can be written by others");
    fs::remove_all(folder_);
  }
}

TEST_F(StrangersDirectory, BehindASymbolicLinkIsRefused) {
  fs::create_directory(base_ / "elsewhere");
  fs::create_directory_symlink(base_ / "elsewhere", folder_);
  ExpectRefused("is a symbolic link");
  fs::remove(folder_);
  fs::create_symlink("nowhere", folder_);
  ExpectRefused("is a symbolic link");
}

TEST_F(StrangersDirectory, ThatIsAFileIsRefused) {
  std::ofstream(folder_) << "x";
  EXPECT_FALSE(Make("r1").has_value());
  EXPECT_FALSE(LivingRuns(paths_).has_value());
}

TEST_F(RunDirectoryTest, OneThatOthersMayReadIsClosedToThem) {
  const fs::path mine = base_ / "mine";
  fs::create_directory(mine);
  ASSERT_EQ(chmod(mine.c_str(), 0755), 0);
  EXPECT_TRUE(Make("r1", mine).has_value()) << message_;
  EXPECT_EQ(fs::status(mine).permissions(), fs::perms::owner_all);
}

TEST_F(RunDirectoryTest, OneThatHoldsWhatOthersMayReadStaysOpenToThem) {
  const fs::path mine = base_ / "mine";
  fs::create_directories(mine / "logs");
  ASSERT_EQ(chmod(mine.c_str(), 0755), 0);
  std::ofstream(mine / "page.html") << "x";
  EXPECT_FALSE(Make("r1", mine).has_value());
  EXPECT_THAT(message_,
              AllOf(HasSubstr(mine.string()), HasSubstr("\"page.html\""), HasSubstr("chmod 700")));
  EXPECT_NE(fs::status(mine).permissions(), fs::perms::owner_all);
  fs::remove(mine / "page.html");
  EXPECT_TRUE(Make("r1", mine).has_value()) << "logs alone are of an earlier run: " << message_;
  std::ofstream(mine / "page.html") << "x";
  EXPECT_TRUE(Make("r1", mine).has_value()) << "it is closed already: " << message_;
}

TEST_F(RunDirectoryTest, PathTooLongForSocketsIsRefusedAtOnce) {
  EXPECT_FALSE(Make("r1", base_ / std::string(60, 'x')).has_value());
  EXPECT_THAT(message_, HasSubstr("too long"));
}

TEST_F(RunDirectoryTest, OfRunsThatHaveEndedTheNewestKeepTheirLogs) {
  for (const char* id : {"1", "2", "3"}) {
    auto ended = RunDirectory::Create("", paths_, id);
    ASSERT_TRUE(ended.has_value());
    RunDirectory::Clean(ended->path(), ended->ours(), true);
    fs::last_write_time(ended->path(),
                        fs::file_time_type::clock::now() + std::chrono::seconds(std::atoi(id)));
  }
  auto living = RunDirectory::Create("", paths_, "0");
  ASSERT_TRUE(living.has_value());
  RunDirectory::RemoveOld(paths_, 2);
  const fs::path folder = RunsFolder(paths_);
  EXPECT_FALSE(fs::exists(folder / "1"));
  for (const char* id : {"0", "2", "3"}) EXPECT_TRUE(fs::exists(folder / id)) << id;
}

TEST_F(RunDirectoryTest, WhatIsNoRunIsNotRemovedWithOldRuns) {
  ASSERT_TRUE(RunDirectory::Create("", paths_, "0").has_value());
  const fs::path folder = RunsFolder(paths_);
  for (const char* name : {"sources", "logs-and-more"}) {
    fs::create_directory(folder / name);
    fs::permissions(folder / name, fs::perms::owner_all);
  }
  std::ofstream(folder / "sources/main.cc") << "int main() {}";
  fs::create_directory(folder / "logs-and-more/logs");
  std::ofstream(folder / "logs-and-more/thesis.tex") << "...";
  RunDirectory::RemoveOld(paths_, 0);
  for (const char* name : {"sources", "logs-and-more"})
    EXPECT_TRUE(fs::exists(folder / name)) << name;
}

TEST_F(RunDirectoryTest, CleanRemovesOursAndLeavesTheLogsOfANamedOne) {
  auto ours = Make("r1");
  RunDirectory::Clean(ours->path(), true, false);
  EXPECT_FALSE(fs::exists(ours->path()));

  auto named = Make("r2", base_ / "mine");
  fs::create_directory(named->path() / "logs");
  std::ofstream(named->path() / "kubeconfig") << "secret";
  RunDirectory::Clean(named->path(), false, false);
  EXPECT_TRUE(fs::exists(named->path() / "logs"));
  EXPECT_FALSE(fs::exists(named->path() / "kubeconfig"));
}

}  // namespace
}  // namespace ringmaster::cli
