#include "operator/cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/cli/command_words.h"

namespace ringmaster::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
T Parse(std::vector<std::string> words) {
  auto parsed = ParseCommandLine(std::move(words));
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  return std::get<T>(parsed.value());
}

TEST(CommandLineTest, HostsSayHowManyWorkersThereAre) {
  auto run = Parse<RunOptions>({"run", "-H", "a:2,b:2", "python3", "train.py", "--plain"});
  EXPECT_EQ(run.np, 4);
  EXPECT_EQ(run.hosts.size(), 2u);
  EXPECT_EQ(run.command, (std::vector<std::string>{"python3", "train.py", "--plain"}));
  EXPECT_FALSE(run.plain);
  run = Parse<RunOptions>({"run", "--hosts", "a:2", "-np", "1", "--ssh-port", "7", "true"});
  EXPECT_EQ(run.np, 1);
  EXPECT_EQ(run.ssh.port, 7);
  for (const char* hosts : {"-H=a:2,b:2", "-Ha:2,b:2"}) {
    run = Parse<RunOptions>({"run", hosts, "python3", "train.py"});
    EXPECT_EQ(run.np, 4) << hosts;
  }
  run = Parse<RunOptions>({"run", "-H", "a:2", "job.yaml", "--plain"});
  EXPECT_EQ(run.np, 0);
  EXPECT_TRUE(run.plain);
}

TEST(CommandLineTest, AScriptThatNamesHostsMakesAnElasticJob) {
  const auto run = Parse<RunOptions>(
      {"run", "-np", "2", "--host-discovery-script", "./hosts.sh", "--ssh-port", "7", "true"});
  EXPECT_EQ(run.host_script, "./hosts.sh");
  EXPECT_EQ(run.min_np, 1);
  EXPECT_EQ(run.max_np, 1024);
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"run", "--host-discovery-script", "s", "job.yaml"}, "goes with -np N COMMAND"},
      {{"run", "-np", "2", "--host-discovery-script", "s", "-H", "a", "true"}, "give one of them"},
      {{"run", "-np", "2", "--slots-per-host", "2", "true"}, "goes with --host-discovery-script"},
      {{"run", "--carry", "file", "job.yaml"}, "goes with -np N COMMAND"}};
  for (const auto& [words, says] : wrong) {
    const auto parsed = ParseCommandLine(words);
    ASSERT_FALSE(parsed.has_value()) << says;
    EXPECT_THAT(parsed.error().message, HasSubstr(says));
  }
}

TEST(CommandLineTest, RunTakesSeveralManifestsWithOptionsOnEitherSide) {
  auto run = Parse<RunOptions>({"run", "--plain", "a.yaml", "b.yaml", "--summary", "s.json"});
  EXPECT_THAT(run.manifests, ElementsAre("a.yaml", "b.yaml"));
  EXPECT_EQ(run.summary, "s.json");
  EXPECT_TRUE(run.plain);
  EXPECT_EQ(run.np, 0);
}

TEST(CommandLineTest, WordsAfterTheCommandBelongToTheCommand) {
  auto run = Parse<RunOptions>({"run", "-np", "4", "--min-np", "2", "--plain", "python3",
                                "train.py", "--timeout", "3", "-np", "9"});
  EXPECT_EQ(run.np, 4);
  EXPECT_EQ(run.min_np, 2);
  EXPECT_EQ(run.timeout.count(), 0);
  EXPECT_THAT(run.command, ElementsAre("python3", "train.py", "--timeout", "3", "-np", "9"));
}

TEST(CommandLineTest, OutputFilenameGoesWithACommandAndWithAManifest) {
  EXPECT_EQ(Parse<RunOptions>({"run", "--output-filename", "out", "a.yaml"}).output_dir, "out");
  auto run = Parse<RunOptions>({"run", "-np", "2", "--output-filename", "out", "python3", "x.py"});
  EXPECT_EQ(run.output_dir, "out");
  EXPECT_THAT(run.command, ElementsAre("python3", "x.py"));
}

TEST(CommandLineTest, TheNameOfABackendMayBeInAnyCase) {
  EXPECT_EQ(Parse<RunOptions>({"run", "-np", "2", "--backend", "none", "true"}).backend, "None");
}

TEST(CommandLineTest, NpMayBeJoinedByAnEqualsSign) {
  auto run = Parse<RunOptions>({"run", "-np=3", "true"});
  EXPECT_EQ(run.np, 3);
  EXPECT_THAT(run.command, ElementsAre("true"));
}

TEST(CommandLineTest, StatusIsAnotherNameOfGet) {
  auto get = Parse<GetOptions>({"status", "digits", "-o", "json", "--run-dir", "/r"});
  EXPECT_EQ(get.job, "digits");
  EXPECT_EQ(get.format, OutputFormat::kJson);
  EXPECT_EQ(get.target.run_dir, "/r");
}

TEST(CommandLineTest, CommandsTakeAClusterAsKubectlDoes) {
  auto get = Parse<GetOptions>({"get", "-A", "-w", "--context", "prod"});
  EXPECT_TRUE(get.all_namespaces);
  EXPECT_TRUE(get.watch);
  EXPECT_EQ(get.target.context, "prod");
  EXPECT_EQ(get.target.ns, "") << "the context's own";
  for (const char* command : {"why", "describe"})
    EXPECT_TRUE(ParseCommandLine({command, "digits", "-n", "team"}).has_value());
}

TEST(CommandLineTest, WhichClusterMayBeSaidBeforeTheCommandAsKubectlTakesIt) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"-n", "team", "get", "digits", "--context", "prod"},
           {"-nteam", "--context=prod", "get", "digits"},
           {"--namespace=team", "--context", "prod", "status", "digits"}}) {
    const auto get = Parse<GetOptions>(words);
    EXPECT_EQ(get.target.ns, "team");
    EXPECT_EQ(get.target.context, "prod");
    EXPECT_EQ(get.job, "digits");
  }
  const auto why = Parse<WhyOptions>({"--kubeconfig", "file", "why", "digits"});
  EXPECT_EQ(why.target.kubeconfig, "file");
  const auto run = Parse<RunOptions>({"--run-dir", "d", "run", "-np", "1", "true", "-n", "2"});
  EXPECT_EQ(run.run_dir, "d");
  EXPECT_THAT(run.command, ElementsAre("true", "-n", "2"));
}

TEST(CommandLineTest, LogsTakesATailAndARankOnlyIfAsked) {
  auto logs = Parse<LogsOptions>({"logs", "digits", "-f", "--tail", "20", "--rank", "0"});
  EXPECT_EQ(logs.tail, 20);
  EXPECT_EQ(logs.rank, 0);
  EXPECT_EQ(Parse<LogsOptions>({"logs", "digits"}).rank, std::nullopt);
}

TEST(CommandLineTest, AFlagBeforeNpTakesNoWordAway) {
  auto run = Parse<RunOptions>({"run", "--keep", "-np", "2", "--summary=s.json", "true", "--keep"});
  EXPECT_EQ(run.np, 2);
  EXPECT_THAT(run.command, ElementsAre("true", "--keep"));
}

TEST(CommandLineTest, AsKubectlsPluginTheTextsSaySo) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"get", "-h"}}) {
    const auto help = ParseCommandLine(words, "kubectl ringmaster");
    EXPECT_THAT(help.error().message, HasSubstr("  kubectl ringmaster "));
  }
  EXPECT_THAT(ParseCommandLine({"run"}, "kubectl ringmaster").error().message,
              HasSubstr("kubectl ringmaster run job.yaml"));
}

TEST(CommandLineTest, CompletionKnowsEveryCommandAndItsOptions) {
  const auto completion = Parse<CompletionOptions>({"completion", "bash"});
  EXPECT_THAT(completion.script, HasSubstr("describe"));
  EXPECT_THAT(completion.script, HasSubstr("--output-filename"));
  EXPECT_THAT(completion.script, HasSubstr("--all-namespaces"));
}

TEST(CommandLineTest, KillNamesAWorkerOnlyIfAsked) {
  EXPECT_EQ(Parse<KillOptions>({"kill", "p"}).worker, std::nullopt);
  EXPECT_EQ(Parse<KillOptions>({"kill", "p", "--worker", "0"}).worker, 0);
}

TEST(CommandLineTest, ACommandWithoutNpIsToldFromAManifest) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"run", "python3", "train.py", "--lr", "0.1"},
       "train.py is a script and no manifest; say how many workers shall run it: `ringmaster run "
       "-np "
       "N python3 train.py --lr 0.1`"},
      {{"run", "--plain", "train.py", "--lr", "0.1"}, "run -np N python3 train.py --lr 0.1`"},
      {{"run", "python3", "-m", "train"},
       "python3 is a program and no manifest; say how many workers shall run it: `ringmaster run "
       "-np "
       "N python3 -m train`"},
      {{"run", "--", "torchrun", "--nproc", "2", "x.py"}, "run -np N torchrun --nproc 2 x.py`"},
      {{"run", "./train.sh"}, "run -np N ./train.sh`"},
      {{"run", "./a.out", "--lr", "0.1"}, "`ringmaster run -np N ./a.out --lr 0.1`"},
      {{"run", "job.yaml", "train.py"}, "train.py is a script"}};
  for (const auto& [words, says] : cases) {
    const auto parsed = ParseCommandLine(words);
    ASSERT_FALSE(parsed.has_value()) << says;
    EXPECT_EQ(parsed.error().code, ExitCode::kUsage);
    EXPECT_THAT(parsed.error().message, HasSubstr(says));
  }
  EXPECT_EQ(Parse<RunOptions>({"run", "-np", "2", "--", "python3", "a"}).np, 2);
  EXPECT_THAT(Parse<RunOptions>({"run", "--", "job.yaml"}).manifests, ElementsAre("job.yaml"));
}

TEST(CommandLineTest, HelpIsACommand) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"help", "run"}, {"help", "run", "me"}}) {
    const auto help = ParseCommandLine(words);
    EXPECT_EQ(help.error().code, ExitCode::kDone);
    EXPECT_THAT(help.error().message, HasSubstr("--output-filename"));
  }
  const auto all = ParseCommandLine({"help"});
  EXPECT_EQ(all.error().code, ExitCode::kDone);
  EXPECT_EQ(all.error().message, ParseCommandLine({"--help"}).error().message);
}

struct Wrong {
  std::vector<std::string> words;
  std::string says;
};

TEST(CommandLineTest, WrongWordsAreUsageErrorsThatNameThem) {
  const Wrong cases[] = {
      {{"run"}, "run: what?"},
      {{"run", "-np", "4"}, "command is missing"},
      {{"run", "-np", "0", "true"}, "--np: \"0\" is not a whole number from 1 to 1024\n"},
      {{"run", "--timeout", "0", "a.yaml"}, "--timeout: \"0\" is not a number of at least 1\n"},
      {{"top", "--interval", "0", "j"}, "--interval: \"0\" is not a number from 0.1 to 3600\n"},
      {{"bench", "--seconds", "0"}, "--seconds: \"0\" is not a number from 0.01 to 600\n"},
      {{"run", "-np", "four", "true"}, "four"},
      {{"run", "-np", "2", "--min-np", "3", "true"}, "--min-np 3 is more than -np 2"},
      {{"run", "-np", "2", "--backend", "gloo", "true"}, "gloo"},
      {{"run", "-np", "2", "--backend", "none", "--standby", "1", "true"}, "--standby has no"},
      {{"run", "--backend", "none", "a.yaml"}, "spec.collectives.backend"},
      {{"run", "-np", "4", "--max-np", "3", "true"}, "--max-np 3 is less than -np 4"},
      {{"run", "--min-np", "2", "a.yaml"}, "elasticPolicy"},
      {{"run", "--backoff-limit", "2", "a.yaml"}, "spec.runPolicy.backoffLimit"},
      {{"run", "-np", "2", "--init-timeout", "0", "true"}, "0"},
      {{"run", "--port", "70000", "a.yaml"}, "70000"},
      {{"scale", "digits"}, "--replicas"},
      {{"scale", "digits", "--replicas", "-1"}, "-1"},
      {{"get", "-o", "xml"}, "xml"},
      {{"get", "--run-dir", "a", "--kubeconfig", "b"}, "two places"},
      {{"get", "--run-dir", "a", "--context", "b"}, "two places"},
      {{"get", "--run", "a"}, "get has no option --run; did you mean --run-dir?"},
      {{"get", "--namspace=x"}, "did you mean --namespace?"},
      {{"-A", "get"}, "put -A behind get"},
      {{"-n", "team", "convert", "a.yaml"}, "convert has no option -n"},
      {{"-n", "team", "stauts"}, "did you mean status?"},
      {{"-n", "team"}, "ringmaster has no option -n"},
      {{"get", "digits", "more"}, "\"more\" is one argument too many"},
      {{"get", "-A", "digits"}, "-A shows all jobs"},
      {{"get", "-A", "-n", "x"}, "-A and -n"},
      {{"ui", "-A", "-n", "x"}, "-A and -n"},
      {{"get", "-w", "-o", "wide"}, "-w shows jobs"},
      {{"stop", "digits"}, "there is no command \"stop\"; did you mean delete?"},
      {{"ps"}, "did you mean get?"},
      {{"start", "job.yaml"}, "did you mean run?"},
      {{"why"}, "why: job is required; `ringmaster get` shows which there are"},
      {{"drain"}, "drain: pod is required; `ringmaster get JOB` shows which there are"},
      {{"scale", "digits", "4"}, "scale: --replicas is required"},
      {{"stauts"}, "there is no command \"stauts\"; did you mean status?"},
      {{"run", "--verbose", "-np", "2", "true"}, "run has no option --verbose"},
      {{"run", "--plian", "a.yaml"}, "did you mean --plain?"},
      {{"run", "solve", "--lr", "1"}, "--lr; is it your program's? Then: run -np N PROGRAM --lr\n"},
      {{"run", "train.py"}, "`ringmaster run -np N python3 train.py`"},
      {{"run", "python3", "train.py"}, "`ringmaster run -np N python3 train.py`"},
      {{"logs"}, "logs: name is required"},
      {{"completion", "tcsh"}, "tcsh"},
      {{"frobnicate"}, "frobnicate"},
      {{"help", "frobnicate"}, "there is no command \"frobnicate\""},
      {{"run", "-n", "2", "true"}, "run has no option -n; did you mean --np?"},
      {{"-V"}, "ringmaster has no option -V; did you mean --version?"},
      {{"get", "-x"}, "get has no option -x\n"},
      {{}, "ringmaster"},
  };
  for (const Wrong& wrong : cases) {
    auto parsed = ParseCommandLine(wrong.words);
    ASSERT_FALSE(parsed.has_value()) << testing::PrintToString(wrong.words);
    EXPECT_EQ(parsed.error().code, ExitCode::kUsage);
    EXPECT_THAT(parsed.error().message, HasSubstr(wrong.says));
  }
}

TEST(CommandLineTest, AVolumeTakesOneWordAndMayComeAgain) {
  const auto run = Parse<RunOptions>({"run", "--volume", "a=/x", "--volume=b=/y", "job.yaml"});
  EXPECT_THAT(run.volumes, ElementsAre("a=/x", "b=/y"));
  EXPECT_THAT(run.manifests, ElementsAre("job.yaml"));
}

TEST(CommandLineTest, ATildeInAPathIsTheHomeFolderHoweverTheShellLeavesIt) {
  const auto at_home = [](std::vector<std::string> words) {
    auto parsed = ParseCommandLine(std::move(words), "ringmaster", "/home/me");
    EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
    return *parsed;
  };
  const auto run = std::get<RunOptions>(
      at_home({"run", "--run-dir=~/x", "--output-filename", "~/out", "--summary=~", "-np", "1",
               "train", "--run-dir=~/y", "~/data"}));
  EXPECT_EQ(run.run_dir, "/home/me/x");
  EXPECT_EQ(run.output_dir, "/home/me/out");
  EXPECT_EQ(run.summary, "/home/me");
  EXPECT_THAT(run.command, ElementsAre("train", "--run-dir=~/y", "~/data"));
  const auto get = std::get<GetOptions>(at_home({"--kubeconfig=~/config", "status", "-n", "~/x"}));
  EXPECT_EQ(get.target.kubeconfig, "/home/me/config");
  EXPECT_EQ(get.target.ns, "~/x") << "no path";
  EXPECT_EQ(std::get<WhyOptions>(at_home({"why", "job", "--run-dir=~you"})).target.run_dir, "~you");
  EXPECT_THAT(std::get<BenchOptions>(at_home({"bench", "-np=2", "--csv=~/out.csv"})).words,
              ElementsAre("--csv=/home/me/out.csv"));
  EXPECT_EQ(Parse<WhyOptions>({"why", "job", "--run-dir=~/x"}).target.run_dir, "~/x")
      << "without a home";
}

TEST(CommandLineTest, AShortOptionMayHaveAnEqualsSignAsKubectlTakesIt) {
  EXPECT_EQ(Parse<WhyOptions>({"why", "digits", "-n=team"}).target.ns, "team");
  EXPECT_EQ(Parse<GetOptions>({"-n=team", "get", "-o=json"}).target.ns, "team");
  EXPECT_EQ(Parse<GetOptions>({"get", "-o=json"}).format, OutputFormat::kJson);
  EXPECT_THAT(Parse<RunOptions>({"run", "-np", "1", "true", "-n=2"}).command,
              ElementsAre("true", "-n=2"));
}

TEST(CommandLineTest, NoCommandTakesAnOptionThatItDoesNotHave) {
  const auto commands = AllCommandWords();
  EXPECT_THAT(commands, testing::SizeIs(testing::Gt(15u)));
  for (const CommandWords& command : commands) {
    const auto parsed = ParseCommandLine({command.name, "--foo"});
    ASSERT_FALSE(parsed.has_value()) << command.name;
    EXPECT_EQ(parsed.error().code, ExitCode::kUsage);
    EXPECT_THAT(parsed.error().message, HasSubstr(" has no option --foo\nTry: ringmaster "))
        << command.name;
  }
}

TEST(CommandLineTest, AnOptionWithoutItsValueAndOneThatStandsTwiceAreNamed) {
  const Wrong cases[] = {
      {{"run", "-np"}, "run: --np needs a value\n"},
      {{"logs", "job", "--tail"}, "logs: --tail needs a value\n"},
      {{"kill", "p", "--worker", "0", "--worker", "1"}, "kill: --worker can be given once\n"}};
  for (const Wrong& wrong : cases) {
    const auto parsed = ParseCommandLine(wrong.words);
    ASSERT_FALSE(parsed.has_value()) << wrong.says;
    EXPECT_EQ(parsed.error().code, ExitCode::kUsage);
    EXPECT_THAT(parsed.error().message, HasSubstr(wrong.says));
  }
}

TEST(CommandLineTest, WrongOptionsOfBenchAreRefusedBeforeAnythingIsStarted) {
  const Wrong cases[] = {
      {{"bench", "--max-byte", "64M"}, "bench has no option --max-byte; did you mean --max-bytes?"},
      {{"bench", "-np", "2", "--ops=allreduce"}, "did you mean --op?"},
      {{"bench", "--op", "allredoce"}, "\"allredoce\" is no operation: allowed are allreduce, "},
      {{"bench", "--op", "1"}, "\"1\" is no operation"},
      {{"bench", "--max-bytes", "many"}, "\"many\" is not a number of bytes: allowed is"},
      {{"bench", "--max-bytes", "1Q"}, "\"1Q\" is not a number of bytes: allowed is"},
      {{"bench", "--max-bytes"}, "bench: --max-bytes needs a value\n"},
      {{"bench", "--min-bytes", "2M", "--max-bytes", "1M"}, "is more than --max-bytes"},
      {{"bench", "train.py"}, "\"train.py\" is one argument too many"},
      {{"-n", "team", "bench"}, "bench has no option -n"}};
  for (const Wrong& wrong : cases) {
    const auto parsed = ParseCommandLine(wrong.words);
    ASSERT_FALSE(parsed.has_value()) << testing::PrintToString(wrong.words);
    EXPECT_EQ(parsed.error().code, ExitCode::kUsage);
    EXPECT_THAT(parsed.error().message, HasSubstr(wrong.says));
  }
}

TEST(CommandLineTest, BenchTakesItsWorkersAndHandsOnTheRest) {
  auto parsed = ParseCommandLine({"bench", "-np", "4", "--op", "allreduce", "--max-bytes", "64M"});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const auto& bench = std::get<BenchOptions>(*parsed);
  EXPECT_EQ(bench.np, 4);
  EXPECT_THAT(bench.words, testing::ElementsAre("--op", "allreduce", "--max-bytes", "64M"));
}

TEST(CommandLineTest, EveryCommandHasHelpWithAnExample) {
  for (const char* command :
       {"run", "get", "describe", "why", "top", "timeline", "ui", "bench", "convert", "logs",
        "scale", "drain", "kill", "delete", "apply", "completion"}) {
    auto parsed = ParseCommandLine({command, "--help"});
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().code, ExitCode::kDone);
    EXPECT_THAT(parsed.error().message, HasSubstr("ringmaster " + std::string(command)));
  }
}

}  // namespace
}  // namespace ringmaster::cli
