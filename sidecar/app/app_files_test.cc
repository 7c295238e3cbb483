// Options, the state file and `install`: what touches environment and disk.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "sidecar/app/install.h"
#include "sidecar/app/options.h"
#include "sidecar/app/ports_file.h"
#include "sidecar/app/state_file.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::app {
namespace {

namespace fs = std::filesystem;

class AppFilesTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name) << text;
  }
  std::string Read(const std::string& name) {
    std::ifstream in(dir_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const support::TempDir temp_;
  const fs::path dir_ = temp_.path();
};

tl::expected<SidecarOptions, std::string> Parse(std::map<std::string, std::string> changes) {
  std::map<std::string, std::string> env = {
      {"RINGMASTER_JOB_NAME", "j"}, {"RINGMASTER_JOB_UID", "ju"},   {"RINGMASTER_POD_NAME", "p"},
      {"RINGMASTER_POD_UID", "pu"}, {"RINGMASTER_STATE_DIR", "/d"}, {"RINGMASTER_SOCKET", "/s"}};
  for (auto& [name, value] : changes) env[name] = value;
  return ParseSidecarOptions([&](const std::string& name) { return env[name]; });
}

TEST(SidecarOptions, TakeTheLongestTimesThatTheSchemaAllows) {
  auto options = Parse(
      {{"RINGMASTER_INIT_TIMEOUT_SECONDS", "31622400"}, {"RINGMASTER_GRACE_SECONDS", "86400"}});
  ASSERT_TRUE(options) << options.error();
  EXPECT_EQ(options->init_timeout, std::chrono::hours(24 * 366));
  EXPECT_EQ(options->grace, std::chrono::hours(24));
}

TEST(SidecarOptions, ListenOnThePodIpOrTheLoopback) {
  EXPECT_EQ(Parse({})->bind, "127.0.0.1");
  const std::pair<std::string, std::string> tls = {"RINGMASTER_TLS_DIR", "/tls"};
  EXPECT_EQ(Parse({{"RINGMASTER_POD_IP", "10.0.0.7"}, tls})->advertise, "10.0.0.7");
  auto wildcard = Parse({{"RINGMASTER_POD_IP", "10.0.0.7"}, {"RINGMASTER_BIND", "0.0.0.0"}, tls});
  EXPECT_EQ(wildcard->bind, "0.0.0.0");
  EXPECT_EQ(wildcard->advertise, "10.0.0.7");
}

TEST(SidecarOptions, WithoutTlsNobodyButThisMachineMayReachIt) {
  const auto allowed = [](std::map<std::string, std::string> env) {
    const auto options = Parse(std::move(env));
    if (options) return std::string("allowed");
    return options.error().substr(0, options.error().find(':'));
  };
  EXPECT_EQ(allowed({{"RINGMASTER_OPERATOR", "unix:/run/op"}}), "allowed");
  EXPECT_EQ(allowed({{"RINGMASTER_OPERATOR", "127.0.0.1:9443"}}), "allowed");
  EXPECT_EQ(allowed({{"RINGMASTER_OPERATOR", "ringmaster.system.svc:9443"}}),
            "RINGMASTER_TLS_DIR is not set, and RINGMASTER_OPERATOR is 'ringmaster.system.svc");
  EXPECT_EQ(allowed({{"RINGMASTER_POD_IP", "10.0.0.7"}}),
            "RINGMASTER_TLS_DIR is not set, and listening on 10.0.0.7");
  EXPECT_EQ(allowed({{"RINGMASTER_POD_IP", "10.0.0.7"}, {"RINGMASTER_INSECURE", "1"}}), "allowed");
  EXPECT_EQ(Parse({{"RINGMASTER_POD_IP", "10.0.0.7"}, {"RINGMASTER_TLS_DIR", "/tls"}})->tls_dir,
            "/tls");
}

TEST(SidecarOptions, WithoutTlsThisMachinesSidecarsMeetInTheirDirectories) {
  EXPECT_EQ(Parse({})->rendezvous_socket, "/d/peer");
  EXPECT_EQ(Parse({{"RINGMASTER_RENDEZVOUS_PORT", "9401"}})->rendezvous_socket, "");
  EXPECT_EQ(Parse({{"RINGMASTER_TLS_DIR", "/tls"}})->rendezvous_socket, "");
  EXPECT_EQ(
      Parse({{"RINGMASTER_POD_IP", "10.0.0.7"}, {"RINGMASTER_INSECURE", "1"}})->rendezvous_socket,
      "");
}

TEST(SidecarOptions, BadOnesAreNamedWithTheirValue) {
  const std::pair<std::map<std::string, std::string>, const char*> cases[] = {
      {{{"RINGMASTER_SLOTS", "0"}},
       "RINGMASTER_SLOTS is '0', an integer from 1 to 1024 is expected"},
      {{{"RINGMASTER_HTTP_PORT", "x1"}},
       "RINGMASTER_HTTP_PORT is 'x1', an integer from 0 to 65535 is expected"},
      {{{"RINGMASTER_JOB_UID", ""}}, "RINGMASTER_JOB_UID is not set"},
      {{{"RINGMASTER_STATE_DIR", "d"}},
       "RINGMASTER_STATE_DIR is 'd', an absolute path is expected"},
      {{{"RINGMASTER_STATE_DIR", "/" + std::string(102, 'd')}},
       "RINGMASTER_STATE_DIR has 103 bytes"},
      {{{"RINGMASTER_BIND", "0.0.0.0"}},
       "RINGMASTER_BIND is '0.0.0.0': RINGMASTER_POD_IP has to say how others reach it"},
  };
  for (const auto& [changes, error] : cases) {
    auto options = Parse(changes);
    ASSERT_FALSE(options) << error;
    EXPECT_EQ(options.error().substr(0, std::string(error).size()), error);
  }
  EXPECT_FALSE(Parse({{"RINGMASTER_SOCKET", std::string(108, 's')}}));
}

TEST_F(AppFilesTest, TheStateSurvivesAndALostOneIsANewIncarnation) {
  StateFile file(dir_, "pod-a");
  auto fresh = file.Load(7);
  ASSERT_TRUE(fresh) << fresh.error();
  EXPECT_EQ(fresh->incarnation, 7u);
  fresh->resigned = true;
  fresh->lineage = 3;
  ASSERT_TRUE(file.Store(*fresh));
  auto again = StateFile(dir_, "pod-a").Load(8);
  EXPECT_EQ(again->incarnation, 7u);
  EXPECT_TRUE(again->resigned);
  EXPECT_EQ(again->lineage, 3u);
  EXPECT_EQ(StateFile(dir_, "pod-b").Load(9)->incarnation, 9u) << "another pod's file is nobody's";
}

// Else nobody would take the pod for a replacement of what it was before.
TEST_F(AppFilesTest, ANewIncarnationIsAboveTheOldOneThoughTheClockWasSetBack) {
  const PortsFile file(dir_, "pod-a");
  EXPECT_EQ(NewIncarnation(file.Load(), 7), 7u);
  ASSERT_TRUE(file.Store({.rendezvous = 1, .heartbeat = 2, .http = 3, .incarnation = 50}));
  EXPECT_EQ(file.Load().http, 3);
  EXPECT_EQ(NewIncarnation(file.Load(), 7), 51u);
  EXPECT_EQ(NewIncarnation(file.Load(), 50), 51u);
  EXPECT_EQ(NewIncarnation(file.Load(), 100), 100u);
  EXPECT_EQ(NewIncarnation(PortsFile(dir_, "pod-b").Load(), 7), 7u);
  Write("ports.json", R"({"podUid":"pod-a","http":1})");
  EXPECT_EQ(NewIncarnation(file.Load(), 7), 7u) << "of an older sidecar";
}

TEST_F(AppFilesTest, AStateThatCannotBeReadIsLost) {
  for (const char* text :
       {"", "{", "[]", R"({"podUid":"pod-a","state":{"view":5}})", R"({"podUid":5})"}) {
    Write("membership.json", text);
    auto state = StateFile(dir_, "pod-a").Load(11);
    ASSERT_TRUE(state) << text;
    EXPECT_EQ(state->incarnation, 11u) << text;
  }
}

// To print or copy a value is recursive: of a hundred thousand brackets the process would die.
TEST_F(AppFilesTest, AFileNestedTooDeepIsNoState) {
  const std::string brackets = std::string(100'000, '[') + std::string(100'000, ']');
  Write("membership.json", R"({"podUid":"pod-a","state":)" + brackets + "}");
  Write("ports.json", R"({"podUid":"pod-a","http":1,"rendezvous":)" + brackets + "}");
  auto state = StateFile(dir_, "pod-a").Load(11);
  ASSERT_TRUE(state) << state.error();
  EXPECT_EQ(state->incarnation, 11u);
  EXPECT_EQ(PortsFile(dir_, "pod-a").Load().http, 0);
}

TEST_F(AppFilesTest, AStateThatCannotBeStoredIsAnError) {
  auto state = StateFile(dir_ / "missing", "pod-a").Load(1);
  ASSERT_FALSE(state);
  EXPECT_NE(state.error().find("RINGMASTER_STATE_DIR"), std::string::npos) << state.error();
}

TEST_F(AppFilesTest, InstallCopiesLauncherLibraryAndPackageAndReplacesOldOnes) {
  Write("build/bin/ringmaster-launcher", "launcher");
  Write("build/bin/ringmaster-bench", "bench");
  Write("build/lib/libringmaster.so.0", "library");
  fs::create_symlink("libringmaster.so.0", dir_ / "build/lib/libringmaster.so");
  Write("build/python/ringmaster/__init__.py", "new");
  Write("to/python/ringmaster/old.py", "old");
  fs::permissions(dir_ / "build/bin/ringmaster-launcher", fs::perms::owner_all);
  fs::permissions(dir_ / "build/python/ringmaster", fs::perms::owner_all);
  auto done = Install(dir_ / "build/bin", dir_ / "to");
  ASSERT_TRUE(done) << done.error();
  EXPECT_EQ(Read("to/ringmaster-launcher"), "launcher");
  EXPECT_EQ(Read("to/ringmaster-bench"), "bench");
  const auto others = [&](const char* name) {
    return fs::status(dir_ / "to" / name).permissions() & fs::perms::others_all;
  };
  const auto enter = fs::perms::others_read | fs::perms::others_exec;
  EXPECT_EQ(others("ringmaster-launcher"), enter) << "the worker may run as any user";
  EXPECT_EQ(others("lib"), enter);
  EXPECT_EQ(others("python/ringmaster"), enter);
  EXPECT_EQ(others("python/ringmaster/__init__.py"), fs::perms::others_read);
  EXPECT_EQ(Read("to/lib/libringmaster.so"), "library");
  EXPECT_FALSE(fs::is_symlink(dir_ / "to/lib/libringmaster.so"));
  EXPECT_EQ(Read("to/lib/libringmaster.so.0"), "library") << "as ringmaster-bench looks for it";
  EXPECT_EQ(Read("to/python/ringmaster/__init__.py"), "new");
  EXPECT_FALSE(fs::exists(dir_ / "to/python/ringmaster/old.py"));
  EXPECT_NE(fs::status(dir_ / "to/ringmaster-launcher").permissions() & fs::perms::owner_exec,
            fs::perms::none);
}

TEST_F(AppFilesTest, InstallTakesTheLibraryOfAWheelFromThePythonPackage) {
  for (const char* name : {"ringmaster-sidecar", "ringmaster-launcher", "ringmaster-bench"})
    Write((std::string("wheel/ringmaster/_programs/bin/") + name).c_str(), name);
  Write("wheel/ringmaster/libringmaster.so", "library");
  Write("wheel/ringmaster/_programs/lib/ringmaster/python/ringmaster/__init__.py", "package");
  auto done = Install(dir_ / "wheel/ringmaster/_programs/bin", dir_ / "to");
  ASSERT_TRUE(done) << done.error();
  EXPECT_EQ(Read("to/lib/libringmaster.so"), "library");
  EXPECT_EQ(Read("to/python/ringmaster/__init__.py"), "package");
}

TEST_F(AppFilesTest, InstallNamesWhatIsMissing) {
  fs::create_directories(dir_ / "bin");
  auto done = Install(dir_ / "bin", dir_ / "to");
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().find("ringmaster-launcher"), std::string::npos);
}

TEST_F(AppFilesTest, PortsAreFoundAgainByTheSamePodOnly) {
  EXPECT_EQ(PortsFile(dir_, "u").Load().heartbeat, 0);
  ASSERT_TRUE(PortsFile(dir_, "u").Store({.rendezvous = 1001, .heartbeat = 1002, .http = 1003}));
  const Ports ports = PortsFile(dir_, "u").Load();
  EXPECT_EQ(ports.rendezvous, 1001);
  EXPECT_EQ(ports.heartbeat, 1002);
  EXPECT_EQ(ports.http, 1003);
  EXPECT_EQ(PortsFile(dir_, "another").Load().rendezvous, 0);
}

TEST_F(AppFilesTest, PortsThatMakeNoSenseAreChosenAnew) {
  for (const char* text :
       {"", "{", "[]", R"({"podUid":"u","heartbeat":"x"})", R"({"podUid":"u","heartbeat":-1})",
        R"({"podUid":"u","heartbeat":70000})"}) {
    Write("ports.json", text);
    EXPECT_EQ(PortsFile(dir_, "u").Load().heartbeat, 0) << text;
  }
  EXPECT_FALSE(PortsFile(dir_ / "nowhere", "u").Store({}));
}

}  // namespace
}  // namespace ringmaster::app
