#include "operator/cli/ssh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <stop_token>
#include <thread>

#include "operator/cli/host_script.h"
#include "operator/cli/machines.h"
#include "operator/cli/program_files.h"
#include "operator/cli/run_environment.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{30};

TEST(SshTest, AScriptHasItsInputOutputAndStatus) {
  const support::TempDir dir;
  std::ofstream(dir.path() / "input") << "it's\n";
  const auto answer =
      Do(SshWords({}, "", "cat; echo no >&2; exit 3"), dir.path() / "input", kPatience);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->code, 3);
  EXPECT_EQ(answer->out, "it's\n");
  EXPECT_EQ(answer->error, "no\n");
}

TEST(SshTest, WhatAPersonHasToMendIsToldFromWhatPasses) {
  EXPECT_TRUE(StaysSo("b: Permission denied (publickey)."));
  EXPECT_TRUE(StaysSo("No ED25519 host key is known for b\r\nHost key verification failed.\r\n"));
  EXPECT_TRUE(StaysSo("ssh: Could not resolve hostname b: Name or service not known"));
  EXPECT_FALSE(StaysSo("ssh: Could not resolve hostname b: Temporary failure in name resolution"));
  EXPECT_FALSE(StaysSo("ssh: connect to host b port 22: Connection refused"));
  EXPECT_FALSE(StaysSo("ssh: connect to host b port 22: No route to host"));
}

TEST(SshTest, QuotedIsOneWordWhateverIsInIt) {
  const std::string text = "a 'b' \"$HOME\" `id` \\ ; *\n";
  const auto answer = Do({"sh", "-c", "printf %s " + Quoted(text)}, "", kPatience);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->out, text);
}

// csh takes a `!` for its history, but behind a backslash, and ends what is quoted with the line.
// fish takes backslashes within quotes for its own.
TEST(SshTest, LoginShellsOfAnyKindHandTheScriptOn) {
  const std::string path = "/a!b\\c'd";
  for (const std::string& script : {InstallScript(path), "echo " + Quoted(path)}) {
    const std::string line = SshWords({}, "b", script).back();
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    bool within = false;
    for (size_t at = 0; at < line.size(); ++at) {
      if (line[at] == '\'') within = !within;
      EXPECT_FALSE(within && (line[at] == '!' || line[at] == '\\')) << line.substr(at);
      if (!within && line[at] == '\\') ++at;  // with what it keeps from the shell
    }
    const auto handed = Do({"sh", "-c", "exec printf %s " + Quoted(script)}, "", kPatience);
    ASSERT_TRUE(handed);
    EXPECT_EQ(handed->out, script);
  }
}

TEST(SshTest, WhatDoesNotEndIsEnded) {
  const auto answer =
      Do({"sh", "-c", "echo waiting >&2; sleep 1000"}, "", std::chrono::milliseconds(500));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("waiting"));
}

TEST(SshTest, WhatRunsWhenStopIsRequestedIsEnded) {
  const support::TempDir dir;
  const fs::path begun = dir.path() / "begun";
  std::stop_source stop;
  const std::jthread stopper([&] {
    while (!fs::exists(begun)) std::this_thread::yield();
    stop.request_stop();
  });
  const auto answer = Do({"sh", "-c", "touch \"$1\"; exec sleep 1000", "sh", begun.string()}, "",
                         kPatience * 10, stop.get_token());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ExitCode::kInterrupted);
}

TEST(HostScriptTest, ItsHostsAreReadAndItsFailuresSayWhatItSaid) {
  const support::TempDir dir;
  const fs::path script = dir.path() / "hosts.sh";
  const auto ask = [&](const std::string& text) {
    std::ofstream(script) << "#!/bin/sh\n" << text;
    return HostScript(script, 2).Ask({});
  };
  auto hosts = ask("echo a; echo b:3");
  ASSERT_FALSE(hosts);
  EXPECT_THAT(hosts.error().message, HasSubstr("hosts.sh: can't be run: "));
  EXPECT_THAT(hosts.error().message, testing::Not(HasSubstr("exec:")));
  fs::permissions(script, fs::perms::owner_all);
  hosts = ask("echo a; echo b:3");
  ASSERT_TRUE(hosts) << hosts.error().message;
  EXPECT_EQ(SlotsOf(*hosts), 5);
  hosts = ask("echo no cluster >&2; exit 3");
  ASSERT_FALSE(hosts);
  EXPECT_THAT(hosts.error().message, HasSubstr("ended with exit code 3: no cluster"));
  hosts = ask("echo a b");
  ASSERT_FALSE(hosts);
  EXPECT_THAT(hosts.error().message, HasSubstr("\"a b\" names no host"));
}

TEST(SshTest, PortAndKeyAreSshsOwn) {
  const auto words = SshWords({.port = 7, .identity_file = "key"}, "me@b", "true");
  EXPECT_THAT(words, Contains("7"));
  EXPECT_THAT(words, Contains("key"));
  EXPECT_THAT(words, Contains("BatchMode=yes"));
  EXPECT_EQ(words.back(), "exec sh -c 'true'");
  EXPECT_EQ(*(words.rbegin() + 1), "me@b");
}

TEST(SshTest, WhatAPersonTypesHasPortAndKey) {
  EXPECT_EQ(SshLine({}, "me@b", "kill 7"), "ssh me@b kill 7");
  EXPECT_EQ(SshLine({.port = 2222, .identity_file = "/k/id_a"}, "b", "kill 7"),
            "ssh -p 2222 -i /k/id_a b kill 7");
  EXPECT_EQ(SshLine({.identity_file = "my key"}, "b", "kill 7"), "ssh -i 'my key' b kill 7");
}

TEST(ProgramFilesTest, TheArchiveHasThemAndTheKeyKnowsThem) {
  const support::TempDir dir;
  const fs::path bin = dir.path() / "bin";
  for (const char* folder : {"bin", "lib", "python/ringmaster/__pycache__"})
    fs::create_directories(dir.path() / folder);
  for (const char* file : {"bin/ringmaster", "bin/ringmaster-sidecar", "bin/ringmaster-launcher",
                           "bin/ringmaster-bench", "lib/libringmaster.so",
                           "python/ringmaster/__init__.py", "python/ringmaster/__pycache__/x"})
    std::ofstream(dir.path() / file) << file;
  const auto files = FindProgramFiles(bin);
  ASSERT_TRUE(files) << files.error().message;
  const fs::path archive = dir.path() / "programs.tar";
  const auto written = WriteArchive(*files, archive);
  ASSERT_TRUE(written) << written.error().message;
  const auto listed = Do({"tar", "-tf", archive.string()}, "", kPatience);
  ASSERT_TRUE(listed);
  EXPECT_THAT(listed->out, HasSubstr("./bin/ringmaster-sidecar\n"));
  EXPECT_THAT(listed->out, HasSubstr("./python/ringmaster/__init__.py\n"));
  EXPECT_THAT(listed->out, ::testing::Not(HasSubstr("__pycache__")));

  const std::string key = KeyOf(*files);
  std::ofstream(dir.path() / "python/ringmaster/__pycache__/y") << "y";
  EXPECT_EQ(KeyOf(*FindProgramFiles(bin)), key);
  std::ofstream(dir.path() / "python/ringmaster/new.py") << "more";
  EXPECT_NE(KeyOf(*FindProgramFiles(bin)), key);
  fs::remove(dir.path() / "bin/ringmaster-bench");
  EXPECT_THAT(FindProgramFiles(bin).error().message, HasSubstr("ringmaster-bench"));
}

// The layout of hack/wheel.
TEST(ProgramFilesTest, AWheelHasTheLibraryInItsPackage) {
  const support::TempDir dir;
  const fs::path package = dir.path() / "ringmaster";
  const fs::path programs = package / "_programs";
  for (const char* folder : {"bin", "lib/ringmaster/private", "lib/ringmaster/python"})
    fs::create_directories(programs / folder);
  for (const char* name :
       {"ringmaster", "ringmaster-sidecar", "ringmaster-launcher", "ringmaster-bench"})
    std::ofstream(programs / "bin" / name) << name;
  std::ofstream(package / "libringmaster.so") << "library";
  const auto files = FindProgramFiles(programs / "bin");
  ASSERT_TRUE(files) << files.error().message;
  std::map<std::string, fs::path> from;
  for (const ProgramFile& file : *files) from[file.to] = file.from;
  EXPECT_EQ(from["lib/libringmaster.so"], package / "libringmaster.so");
  EXPECT_EQ(from["lib/ringmaster/private"], programs / "lib/ringmaster/private");
}

TEST(ProgramFilesTest, InstallingReplacesWhatIsBrokenAndLeavesNothingBeside) {
  const support::TempDir dir;
  fs::create_directories(dir.path() / "from/bin");
  std::ofstream(dir.path() / "from/bin/ringmaster") << "#!/bin/sh\necho it runs\n";
  fs::permissions(dir.path() / "from/bin/ringmaster", fs::perms::owner_all);
  const fs::path archive = dir.path() / "programs.tar";
  ASSERT_TRUE(WriteArchive({{dir.path() / "from/bin/ringmaster", "bin/ringmaster"}}, archive));
  const fs::path cache = dir.path() / "a cache";
  const fs::path programs = cache / "1.0-key";
  const auto install = [&](const fs::path& input) {
    return *Do(SshWords({}, "", InstallScript(programs)), input, kPatience);
  };
  const auto there = [&] {
    return std::distance(fs::directory_iterator(cache), fs::directory_iterator());
  };
  EXPECT_NE(install(dir.path() / "from/bin/ringmaster").code, 0) << "no archive";
  EXPECT_EQ(there(), 0) << "what was begun is left";
  fs::create_directories(programs / "python");  // incomplete: no bin/ringmaster
  std::ofstream(programs / "python/old") << "old";
  for (const char* when : {"over a broken one", "again"}) {
    const SshAnswer answer = install(archive);
    EXPECT_EQ(answer.code, 0) << when << answer.error;
    EXPECT_EQ(answer.out, "it runs\n") << when;
    EXPECT_EQ(there(), 1) << when;
    EXPECT_FALSE(fs::exists(programs / "python/old")) << when;
  }
}

TEST(MachinesTest, ThisMachineIsKnownByItsAddresses) {
  EXPECT_TRUE(IsThisMachine("localhost"));
  EXPECT_TRUE(IsThisMachine("127.0.0.1"));
  EXPECT_TRUE(IsThisMachine("127.0.1.1"));
  EXPECT_FALSE(IsThisMachine("me@127.0.0.1")) << "another user";
  EXPECT_FALSE(IsThisMachine("224.0.0.1")) << "a socket can have it, but no interface has it";
}

// As the Debian machine a sees itself by `ssh me@a`.
TEST(MachinesTest, ThisMachineUnderAnotherUserIsKnownByItsNetwork) {
  const support::TempDir dir;
  for (const char* folder : {"bin", "lib", "python"}) fs::create_directories(dir.path() / folder);
  for (const char* file : {"bin/ringmaster", "bin/ringmaster-sidecar", "bin/ringmaster-launcher",
                           "bin/ringmaster-bench", "lib/libringmaster.so"})
    std::ofstream(dir.path() / file) << file;
  const fs::path ssh = dir.path() / "bin/ssh";
  std::ofstream(ssh) << "#!/bin/sh\n"
                        "for script; do :; done\n"
                        "SSH_CONNECTION='127.0.0.1 7 127.0.1.1 22' exec sh -c \"$script\"\n";
  fs::permissions(ssh, fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", ((dir.path() / "bin").string() + ":" + path).c_str(), 1);
  Machine machine = MachineOf({"me@a", 1}, 1, 0);
  MachineSetup setup({.bin_dir = dir.path() / "bin", .work_dir = dir.path()}, {});
  const auto looked = setup.Look(&machine);
  setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(looked) << looked.error().message;
  EXPECT_FALSE(machine.here) << "another user's programs and files";
  EXPECT_TRUE(machine.same_network);
  EXPECT_EQ(machine.seen_from, "127.0.0.1");
}

TEST(RunEnvironmentTest, WhatNamesThisMachineStaysHere) {
  for (const char* travels : {"PATH", "PYTHONPATH", "HOROVOD_TIMELINE", "RINGMASTER_SHM", "HOMES"})
    EXPECT_TRUE(Travels(travels)) << travels;
  for (const char* stays : {"HOME", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "RINGMASTER_RUN_DIR",
                            "HOSTNAME", "BASH_FUNC_x%%", ""})
    EXPECT_FALSE(Travels(stays)) << stays;
}

}  // namespace
}  // namespace ringmaster::cli
