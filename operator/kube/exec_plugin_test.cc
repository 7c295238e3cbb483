// Credential plugins: their input, how they end, and which answers are valid. (credentials_test.cc
// tests what a client does with the answers.)
#include "operator/kube/exec_plugin.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "operator/kube/testing/plugin_fixture.h"

namespace ringmaster::kube {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ExecPluginTest : public testing::PluginFixture {
 protected:
  static Result<ExecAnswer> Run(const ExecPlugin& plugin, Clock::duration patience = 20s,
                                std::stop_token stop = {}) {
    return RunExecPlugin(plugin, Clock::now() + patience, std::move(stop));
  }
  // The token, or the error.
  static std::string TokenOf(const ExecPlugin& plugin, Clock::duration patience = 20s) {
    const auto answer = Run(plugin, patience);
    return answer ? answer->token : answer.error().message;
  }
  std::string TokenOf(const std::string& body) const { return TokenOf(Plugin(body)); }

  std::string File(const char* name) const { return (dir_ / name).string(); }
  std::string Text(const char* name) const {
    std::ifstream in(dir_ / name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }
  // What a plugin with this cluster is told in its environment.
  Json Told(const Json& cluster) const {
    ExecPlugin plugin = Plugin("printf '%s' \"$KUBERNETES_EXEC_INFO\" > " + File("info") + kOne);
    plugin.cluster = cluster;
    EXPECT_EQ(TokenOf(plugin), "one");
    return Json::parse(Text("info"));
  }
  static std::ptrdiff_t OpenFiles() {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  }

  const std::string kOne = "\n" + Print(R"({"token": "one"})");
};

TEST_F(ExecPluginTest, GetsArgumentsEnvironmentAndNoInput) {
  ExecPlugin plugin =
      Plugin("readlink /proc/$$/fd/0 > " + File("stdin") + "\nprintf '%s|%s|%s' \"$1\" \"$2\" " +
             "\"$(tr '\\0' '\\n' < /proc/$$/environ | grep -E '^(NAME|OURS|KUBERNETES_EXEC_INFO)=' "
             "| sort)\" > " +
             File("args") + kOne);
  plugin.args = {"--a b", "c"};
  plugin.env = {{"NAME", "value"}};
  // Gives this program an input, however it was started.
  const int input = dup(STDIN_FILENO), other = open(plugin.command.c_str(), O_RDONLY | O_CLOEXEC);
  dup2(other, STDIN_FILENO);
  setenv("NAME", "of the operator", 1);
  setenv("OURS", "too", 1);
  setenv("KUBERNETES_EXEC_INFO", "of the operator", 1);
  const std::string token = TokenOf(plugin);
  for (const char* name : {"NAME", "OURS", "KUBERNETES_EXEC_INFO"}) unsetenv(name);
  dup2(input, STDIN_FILENO);
  close(input);
  close(other);
  EXPECT_EQ(token, "one");
  EXPECT_EQ(Text("stdin"), "/dev/null\n");
  EXPECT_EQ(Text("args"),
            "--a b|c|KUBERNETES_EXEC_INFO={\"apiVersion\":\"client.authentication.k8s.io/v1\","
            "\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false}}\nNAME=value\nOURS=too");
}

TEST_F(ExecPluginTest, IsToldOfTheClusterWhateverItsNameIs) {
  EXPECT_EQ(Told({{"server", "https://x"}})["spec"]["cluster"], Json({{"server", "https://x"}}));
  EXPECT_EQ(Told({{"server", "\xff"}})["spec"]["cluster"]["server"], "\ufffd");
}

TEST_F(ExecPluginTest, IsFoundByItsNameOnThePath) {
  ExecPlugin plugin = Plugin("");
  plugin.command = "sh";
  plugin.args = {"-c", kOne};
  EXPECT_EQ(TokenOf(plugin), "one");
}

TEST_F(ExecPluginTest, EndsBySignalsThatThisProgramBlocksOrIgnores) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = signal(SIGPIPE, SIG_IGN);
  // Uses only shell built-ins: while a shell waits for a program it blocks no signals, whatever
  // mask it inherited.
  const std::string one = " $$\necho '" + Answer(R"({"token": "one"})") + "'\n";
  const std::string term = TokenOf("kill -TERM" + one), pipe = TokenOf("kill -PIPE" + one);
  signal(SIGPIPE, handler);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_THAT(term, EndsWith("failed with status 143"));
  EXPECT_THAT(pipe, EndsWith("failed with status 141"));
}

TEST_F(ExecPluginTest, HasItsOwnEndsOfThePipesOnly) {
  EXPECT_EQ(
      TokenOf("for fd in /proc/$$/fd/*; do\n"
              "  case $(readlink $fd) in\n"
              "    \"$(readlink /proc/$$/fd/1)\" | \"$(readlink /proc/$$/fd/2)\") echo $fd ;;\n"
              "  esac\ndone | wc -l > " +
              File("pipes") + kOne),
      "one");
  EXPECT_EQ(std::stoi(Text("pipes")), 2);
}

TEST_F(ExecPluginTest, LeavesNoFileOpen) {
  const auto before = OpenFiles();
  EXPECT_EQ(TokenOf(kOne), "one");
  EXPECT_THAT(TokenOf("exit 1"), HasSubstr("failed with status 1"));
  EXPECT_EQ(OpenFiles(), before);
}

TEST_F(ExecPluginTest, ClosesNoFileThatIsAnothers) {
  const ExecPlugin plugin = Plugin("touch " + File("runs") + "\nwhile [ ! -e " + File("go") +
                                   " ]; do sleep 0.01; done" + kOne);
  std::jthread caller([&] { EXPECT_EQ(TokenOf(plugin), "one"); });
  EXPECT_TRUE(Becomes([&] { return std::filesystem::exists(File("runs")); }));
  std::vector<int> others;
  for (int i = 0; i < 8; ++i) others.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Write("go", "");
  caller.join();
  for (const int fd : others) EXPECT_EQ(close(fd), 0);
}

TEST_F(ExecPluginTest, SaysWhenThereAreNoFilesLeftToRunItWith) {
  const ExecPlugin plugin = Plugin(kOne);
  const auto before = OpenFiles();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  for (const rlim_t left : {0, 2}) {
    // The lowest free descriptor is used first: once two new ones are adjacent, there are no gaps
    // below.
    std::vector<int> held;
    const auto hold = [&] { held.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC)); };
    for (int i = 0; i < 64; ++i) hold();
    rlimit less = limit;
    less.rlim_cur = static_cast<rlim_t>(held.back()) + 1 + left;
    setrlimit(RLIMIT_NOFILE, &less);
    const std::string said = TokenOf(plugin);
    setrlimit(RLIMIT_NOFILE, &limit);
    for (const int fd : held) close(fd);
    EXPECT_THAT(said, EndsWith("can't be run: Too many open files")) << left;
  }
  EXPECT_EQ(OpenFiles(), before);
}

TEST_F(ExecPluginTest, ThatIsMissingIsNamedWithItsHint) {
  ExecPlugin plugin = Plugin("");
  plugin.command = (dir_ / "no-such-plugin").string();
  const std::string says =
      "credential plugin " + plugin.command + " can't be run: No such file or directory";
  EXPECT_EQ(TokenOf(plugin), says);
  plugin.install_hint = "Install it with magic.";
  EXPECT_EQ(TokenOf(plugin), says + ". Install it with magic.");
}

TEST_F(ExecPluginTest, WhatIsWrongWithItsAnswerIsSaid) {
  struct Case {
    std::string body, message;
  };
  for (const Case& c :
       {Case{"echo please log in >&2; exit 3", "failed with status 3: please log in"},
        Case{"kill -9 $$", "failed with status 137"},
        Case{"echo nothing useful", "printed no ExecCredential with a status"},
        Case{"echo '[]'", "printed no ExecCredential with a status"},
        Case{"echo '{\"kind\": 1, \"status\": {\"token\": \"one\"}}'",
             "printed no ExecCredential with a status"},
        Case{"echo '{\"kind\": \"Token\", \"status\": {\"token\": \"one\"}}'",
             "printed no ExecCredential with a status"},
        Case{"echo '{\"kind\": \"ExecCredential\"}'", "printed no ExecCredential with a status"},
        Case{Print("\"good\""), "printed no ExecCredential with a status"},
        Case{Print("{}"), "printed neither a token nor a client certificate"},
        Case{Print(R"({"token": 1})"), "printed neither a token nor a client certificate"},
        Case{Print(R"({"clientKeyData": "x"})"),
             "printed only one of clientCertificateData and clientKeyData"},
        Case{Print(R"({"clientCertificateData": "x"})"),
             "printed only one of clientCertificateData and clientKeyData"},
        Case{Print(R"({"token": "one", "expirationTimestamp": "soon"})"),
             "printed an expirationTimestamp that is no time: \"soon\""},
        Case{"echo '{\"kind\": \"ExecCredential\", \"apiVersion\": \"v9\", \"status\": {}}'",
             "printed an ExecCredential of apiVersion \"v9\"; the kubeconfig says "
             "client.authentication.k8s.io/v1"}}) {
    const ExecPlugin plugin = Plugin(c.body);
    const auto answer = Run(plugin);
    ASSERT_FALSE(answer.has_value()) << c.body;
    EXPECT_EQ(answer.error().code, ErrorCode::kForbidden) << c.body;
    EXPECT_EQ(answer.error().message, "credential plugin " + plugin.command + " " + c.message);
  }
}

TEST_F(ExecPluginTest, MayPrintOneMebibyte) {
  std::string answer = Answer(R"({"token": "one"})");
  answer.resize(1 << 20, ' ');
  EXPECT_EQ(TokenOf("cat " + Write("answer", answer).string()), "one");
  EXPECT_THAT(TokenOf("cat " + Write("answer", answer + " ").string()),
              EndsWith("printed more than 1 MiB"));
}

TEST_F(ExecPluginTest, ThatNeverStopsPrintingIsEndedAtOnce) {
  EXPECT_THAT(TokenOf(Plugin("yes"), 24h), EndsWith("printed more than 1 MiB"));
}

TEST_F(ExecPluginTest, TheLastFourHundredBytesOfItsErrorsAreShown) {
  const std::string shown = "e" + std::string(398, 'r') + "s";
  const auto errors = Write("errors", std::string(9000, 'x') + shown);
  EXPECT_THAT(TokenOf("cat " + errors.string() + " >&2; exit 3"),
              EndsWith("failed with status 3: " + shown));
}

TEST_F(ExecPluginTest, MayCloseEitherPipeBeforeTheOther) {
  EXPECT_EQ(TokenOf("exec 2>&-\nsleep 0.2" + kOne), "one");
  EXPECT_THAT(TokenOf("exec >&-\nsleep 0.2\necho log in >&2\nexit 1"), EndsWith(": log in"));
}

TEST_F(ExecPluginTest, ThatHangsIsEndedWithAllItsChildrenAtTheDeadline) {
  EXPECT_THAT(TokenOf(Hangs("trap '' TERM\necho $$ is busy >&2\n"), 500ms),
              ::testing::ContainsRegex(
                  "gave no answer within [0-9][0-9]? s \\(it gets no .*\\): [0-9]+ is busy$"));
  EXPECT_TRUE(Becomes([&] { return !ChildRuns(); }));
}

TEST_F(ExecPluginTest, ThatHangsIsEndedAlsoWhenItHasSaidAllItHasToSay) {
  EXPECT_THAT(TokenOf(Plugin(kOne + "exec >&- 2>&-\nsleep 100\n"), 500ms),
              HasSubstr("gave no answer within"));
}

TEST_F(ExecPluginTest, ThatHangsIsEndedWithAllItsChildrenWhenTheClientStops) {
  std::stop_source stop;
  std::jthread stopper([&] {
    EXPECT_TRUE(Becomes([&] { return ChildRuns(); }));
    stop.request_stop();
  });
  EXPECT_THAT(Run(Hangs(), 20s, stop.get_token()).error().message,
              EndsWith("was ended: this client is stopping"));
  EXPECT_TRUE(Becomes([&] { return !ChildRuns(); }));
}

TEST_F(ExecPluginTest, ThatHasAnsweredMayLeaveAChildBehind) {
  EXPECT_EQ(TokenOf("sleep 100 > /dev/null 2>&1 &\n" + NoteChild() + kOne), "one");
  EXPECT_TRUE(ChildRuns());
  if (Child() != 0) kill(Child(), SIGKILL);
}

TEST(Timestamps, AreReadWithFractionsAndOffsets) {
  auto base = ParseTimestamp("2026-01-02T03:04:05Z");
  ASSERT_TRUE(base.has_value());
  EXPECT_EQ(base->time_since_epoch(), 1'767'323'045s);
  for (const char* same : {"2026-01-02T03:04:05z", "2026-01-02T03:04:05.123456789Z",
                           "2026-01-02T05:04:05+02:00", "2026-01-01T21:34:05.5-05:30"}) {
    EXPECT_EQ(ParseTimestamp(same), base) << same;
  }
  for (const char* bad : {"", "soon", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02T03:04:05Zx",
                          "2026-01-02T03:04:05+x", "2026-01-02T03:04:05+02",
                          "2026-01-02T03:04:05+02:000", "2026-01-02T03:04:05+"}) {
    EXPECT_EQ(ParseTimestamp(bad), std::nullopt) << bad;
  }
}

TEST(Timestamps, MayBeLongAgoOrForEver) {
  const auto base = ParseTimestamp("2026-01-02T03:04:05Z");
  for (const char* past : {"0001-01-01T00:00:00Z", "1015-01-01T00:00:00+23:59"})
    EXPECT_LT(ParseTimestamp(past), base) << past;
  for (const char* future : {"2262-04-12T00:00:00Z", "9999-12-31T23:59:59Z"})
    EXPECT_GT(ParseTimestamp(future), base) << future;
}

TEST(Timestamps, AreNotReadInTheTimeZoneOfThisMachine) {
  const auto base = ParseTimestamp("2026-01-02T03:04:05Z");
  setenv("TZ", "XYZ-5", 1);
  const auto there = ParseTimestamp("2026-01-02T03:04:05Z");
  unsetenv("TZ");
  tzset();
  EXPECT_EQ(there, base);
}

}  // namespace
}  // namespace ringmaster::kube
