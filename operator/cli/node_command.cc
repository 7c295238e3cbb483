#include "operator/cli/node_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "common/process/file_limit.h"
#include "operator/cli/detach.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/run_directory.h"
#include "operator/cli/run_environment.h"
#include "operator/cli/run_log.h"
#include "operator/cli/signals.h"
#include "operator/kube/base64.h"
#include "operator/kube/kube_client.h"
#include "operator/kubelet/node_process.h"

extern char** environ;

namespace ringmaster::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::milliseconds kNodeGrace{3000};
// A starting container must not wait longer than this for an unreachable server.
constexpr std::chrono::milliseconds kDeadline{5000};
constexpr size_t kKeptNodes = 10;  // ended nodes whose logs exist only here

// This machine's environment, overridden by that of the run; only this machine's if the run has
// none.
kube::Result<std::vector<std::string>> Environment(kube::KubeApi* api) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t at = text.find('=');
    if (at != std::string::npos) variables[text.substr(0, at)] = text.substr(at + 1);
  }
  const auto secret = api->Get(kube::Secrets(), "default", kEnvironmentSecret);
  if (!secret && secret.error().code != kube::ErrorCode::kNotFound)
    return tl::unexpected(secret.error());
  if (secret) {
    for (const auto& [name, value] : fields::Object(*secret, "data").items())
      variables[name] = kube::DecodeBase64(value.get<std::string>()).value_or("");
  }
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

// Identifies a node: the file is in the directory of the node's process, for later processes of the
// same node.
constexpr char kIdentityFile[] = "node.id";

std::string IdentityOf(const kube::ClientConfig& config, const std::string& node) {
  return fmt::format("{}:{} {}\n{}", config.host, config.port, node, config.ca_pem);
}

bool WriteIdentity(const fs::path& dir, const std::string& identity) {
  std::ofstream file(dir / kIdentityFile);
  file << getpid() << "\n" << identity;
  file.close();
  return file.good();
}

// The living process of this node, in a directory that the user didn't name.
Outcome<std::optional<pid_t>> FindLiving(const RunPaths& paths, const std::string& identity) {
  const auto living = LivingRuns(paths);
  if (!living) return tl::unexpected(living.error());
  for (const fs::path& dir : *living) {
    std::ifstream file(dir / kIdentityFile);
    pid_t pid = 0;
    std::string rest;
    if (!(file >> pid) || file.get() != '\n') continue;
    std::getline(file, rest, '\0');
    if (rest == identity) return pid;
  }
  return std::nullopt;
}

const char* TextOf(kubelet::NodeEnd end) {
  switch (end) {
    case kubelet::NodeEnd::kReleased:
      return "the run has ended";
    case kubelet::NodeEnd::kSignal:
      return "a signal";
    case kubelet::NodeEnd::kAbandoned:
      return "the machine that started the run has not answered for too long";
  }
  return "";
}

Outcome<void> Serve(const NodeCommandOptions& options, const fs::path& bin_dir,
                    const RunDirectory& dir, const kube::ClientConfig& config,
                    const SayReady& ready) {
  LogToFile(dir.path(), "node");
  process::RaiseFileLimit();
  auto client = kube::MakeKubeClient(config);
  if (!client) return tl::unexpected(FromKube(client.error()));
  const std::shared_ptr<kube::KubeApi> api = std::move(*client);
  auto environment = Environment(api.get());
  if (!environment) return tl::unexpected(FromKube(environment.error()));
  auto node = kubelet::NodeProcess::Start({.name = options.name,
                                           .address = options.address,
                                           .pods = options.pods,
                                           .run_dir = dir.path(),
                                           .bin_dir = bin_dir,
                                           .environment = std::move(*environment),
                                           .abandon_after = options.abandon_after,
                                           .again = options.again},
                                          api);
  if (!node) return tl::unexpected(FromKube(node.error()));
  const SignalThread signals([&node](int, int) { (*node)->RequestStop(); });
  logging::Info("node runs name={} address={}", options.name, options.address);
  ready(fmt::format("ready {} {}", getpid(), dir.path().string()));
  const kubelet::NodeResult result = (*node)->Await(kNodeGrace);
  logging::Info("node ended reason={} all_logs_sent={}", logging::Value(TextOf(result.end)),
                result.logs_sent);
  // The logs are kept if only this machine has them.
  RunDirectory::Clean(dir.path(), dir.ours(),
                      result.end == kubelet::NodeEnd::kAbandoned || !result.logs_sent);
  return {};
}

}  // namespace

Outcome<void> RunNode(const NodeCommandOptions& options, const fs::path& bin_dir,
                      const std::string& node_id) {
  const bool piped = options.kubeconfig == "-";
  auto config = kube::LoadKubeconfig(piped ? "/dev/stdin" : options.kubeconfig);
  if (!config) return tl::unexpected(FromKube(config.error()));
  config->deadline = kDeadline;
  config->user_agent = "ringmaster-node";
  const RunPaths paths{.of_nodes = true};
  const std::string identity = IdentityOf(*config, options.name);
  if (options.again) {
    const auto living = FindLiving(paths, identity);
    if (!living) return tl::unexpected(living.error());
    if (*living) {
      std::printf("runs %d\n", **living);
      return {};
    }
  }
  const auto run = [&](const SayReady& ready) -> Outcome<void> {
    auto dir = RunDirectory::Create(options.work_dir, paths, node_id);
    if (!dir) return tl::unexpected(dir.error());
    RunDirectory::RemoveOld(paths, kKeptNodes);
    if (!WriteIdentity(dir->path(), identity)) {
      return Fail(ExitCode::kMachineLacks,
                  fmt::format("{} can't be written in", dir->path().string()));
    }
    auto served = Serve(options, bin_dir, *dir, *config, ready);
    if (!served) RunDirectory::Clean(dir->path(), dir->ours(), false);
    return served;
  };
  if (options.detach) return RunDetached(run);
  return run([](const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  });
}

}  // namespace ringmaster::cli
