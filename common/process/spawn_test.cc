#include "common/process/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "common/process/file_limit.h"

namespace ringmaster::process {
namespace {

// What a shell prints that is started with this spec.
std::string Output(SpawnSpec spec, const std::string& script) {
  int out[2];
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  spec.argv = {"/bin/sh", "-c", script};
  spec.output = out[1];
  const SpawnResult spawned = Spawn(spec);
  EXPECT_GT(spawned.pid, 0) << spawned.step;
  close(out[1]);
  std::string text;
  char buffer[256];
  for (ssize_t n; (n = read(out[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(out[0]);
  waitpid(spawned.pid, nullptr, 0);
  return text;
}

TEST(SpawnTest, TheProgramGetsItsEnvironmentDirectoryAndAnEmptyInput) {
  EXPECT_EQ(Output({.env = {"A=b"}, .working_dir = "/"}, "echo $A; pwd; cat"), "b\n/\n");
}

TEST(SpawnTest, TheProgramHasTheLimitOfFilesFromBeforeOursWasRaised) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low{100, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  RaiseFileLimit();
  rlimit now{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, limit.rlim_max);
  EXPECT_EQ(Output({}, "ulimit -Sn"), "100\n");
  std::vector<int> files;
  for (int i = 0; i < 150; ++i) files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_GE(files.back(), 100);
  EXPECT_EQ(Output({}, "ulimit -Sn"), "100\n") << "although more are open here";
  for (const int file : files) close(file);
}

TEST(SpawnTest, TheProcessLeadsAGroup) {
  const SpawnResult spawned = Spawn({.argv = {"sleep", "60"}, .env = {}});
  ASSERT_GT(spawned.pid, 0);
  EXPECT_EQ(getpgid(spawned.pid), spawned.pid);
  EXPECT_EQ(kill(-spawned.pid, SIGKILL), 0);
  waitpid(spawned.pid, nullptr, 0);
}

TEST(SpawnTest, AnIsolatedProgramInheritsNoFileAndNoIgnoredSignal) {
  const int file = open("/dev/null", O_RDONLY);  // no O_CLOEXEC
  const std::string probe = "test -e /proc/self/fd/" + std::to_string(file) + " && echo inherited";
  const auto before = signal(SIGHUP, SIG_IGN);
  const std::string ignored = "grep SigIgn /proc/self/status | tail -c 2";
  EXPECT_EQ(Output({}, probe), "inherited\n");
  EXPECT_EQ(Output({}, ignored), "1\n");
  EXPECT_EQ(Output({.isolated = true}, probe), "");
  EXPECT_EQ(Output({.isolated = true}, ignored), "0\n");
  signal(SIGHUP, before);
  close(file);
}

TEST(SpawnTest, NamesTheStepThatFailed) {
  SpawnResult failed = Spawn({.argv = {"no-such-program"}});
  EXPECT_EQ(failed.pid, -1);
  EXPECT_EQ(failed.error, ENOENT);
  EXPECT_EQ(failed.step, "exec");
  failed = Spawn({.argv = {"sh"}, .search_path = false});
  EXPECT_EQ(failed.step, "exec") << "a path is not searched for";
  failed = Spawn({.argv = {"true"}, .working_dir = "/no/such"});
  EXPECT_EQ(failed.step, "working directory");
}

}  // namespace
}  // namespace ringmaster::process
