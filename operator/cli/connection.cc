#include "operator/cli/connection.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "operator/cli/kube_failure.h"
#include "operator/kube/kube_client.h"

namespace ringmaster::cli {
namespace fs = std::filesystem;
namespace {

fs::path DefaultKubeconfig(const Surroundings& around) { return around.home / ".kube/config"; }

Outcome<Place> Cluster(const Target& target, const Surroundings& around) {
  Place place;
  if (!target.kubeconfig.empty()) {
    place.kubeconfigs = {target.kubeconfig};
  } else if (place.kubeconfigs = kube::SplitPathList(around.kubeconfig);
             place.kubeconfigs.empty()) {
    place.kubeconfigs = {DefaultKubeconfig(around)};
  }
  return place;
}

Outcome<Place> Run(const fs::path& run_dir, std::string note = "") {
  std::error_code ignored;
  if (!fs::exists(run_dir, ignored))
    return Fail(ExitCode::kUsage,
                fmt::format("no run is alive in {}: there is no such directory", run_dir.string()));
  if (auto own = CheckOwn(run_dir); !own) return Fail(ExitCode::kUsage, own.error().message);
  const auto alive = AskAlive(run_dir);
  if (!alive) return Fail(ExitCode::kUsage, alive.error().message);
  if (!*alive)
    return Fail(ExitCode::kUsage, fmt::format("no run is alive in {}", run_dir.string()));
  return Place{run_dir, {run_dir / "kubeconfig"}, std::move(note)};
}

std::string List(const std::vector<fs::path>& runs) {
  std::string text;
  for (const fs::path& run : runs) text += "\n  --run-dir " + run.string();
  return text;
}

// A user with both a run and a cluster may mean either.
std::string NoteOnCluster(const fs::path& run_dir, const Surroundings& around) {
  for (const fs::path& file : kube::SplitPathList(around.kubeconfig)) {
    std::error_code ignored;
    if (fs::equivalent(file, run_dir / "kubeconfig", ignored)) return "";
  }
  if (around.kubeconfig.empty()) return "";
  return fmt::format("this is your run in {}; --context or --kubeconfig name a cluster",
                     run_dir.string());
}

Outcome<std::optional<Place>> LivingRun(const Surroundings& around, Purpose purpose) {
  const RunPaths& paths = around.paths;
  if (!paths.run_dir.empty() && !HasEnded(paths.run_dir)) {
    auto place = Run(paths.run_dir, NoteOnCluster(paths.run_dir, around));
    if (!place) return tl::unexpected(place.error());
    return std::optional(std::move(*place));
  }
  if (!paths.run_dir.empty() && purpose == Purpose::kChange)
    return Fail(
        ExitCode::kUsage,
        fmt::format("no run is alive in {}, which RINGMASTER_RUN_DIR names: nothing else is "
                    "changed in its place",
                    paths.run_dir.string()));
  const auto runs = LivingRuns(paths);
  if (!runs) return tl::unexpected(runs.error());
  if (runs->empty()) return std::optional<Place>();
  if (runs->size() > 1 && purpose == Purpose::kChange)
    return Fail(ExitCode::kUsage,
                "several runs are alive on this machine: say which, so that no "
                "other is changed" +
                    List(*runs));
  std::string note =
      runs->size() > 1
          ? fmt::format("several runs are alive, this is the newest; all of them:{}", List(*runs))
          : NoteOnCluster(runs->front(), around);
  auto place = Run(runs->front(), std::move(note));
  if (!place) return tl::unexpected(place.error());
  return std::optional(std::move(*place));
}

std::string NothingToTalkTo(const Surroundings& around) {
  std::string text =
      "no run is alive on this machine. Start one with `ringmaster run JOB.yaml`, name one that "
      "was started with a --run-dir by --run-dir DIR, or name a cluster with --context NAME, "
      "--kubeconfig FILE or $KUBECONFIG";
  const fs::path kubectls = DefaultKubeconfig(around);
  std::error_code ignored;
  if (fs::exists(kubectls, ignored)) text += fmt::format(" (kubectl's is {})", kubectls.string());
  if (const fs::path logs = LogsOfLastRun(around.paths); !logs.empty())
    text += "; logs of the last run are in " + logs.string();
  return text;
}

}  // namespace

Outcome<Place> FindPlace(const Target& target, const Surroundings& around, Purpose purpose) {
  if (!target.run_dir.empty()) return Run(target.run_dir);
  if (!target.kubeconfig.empty() || !target.context.empty() || around.kubectl_plugin)
    return Cluster(target, around);
  auto run = LivingRun(around, purpose);
  if (!run) return tl::unexpected(run.error());
  if (*run) return **run;
  if (!around.kubeconfig.empty()) return Cluster(target, around);
  return Fail(ExitCode::kUsage, NothingToTalkTo(around));
}

Outcome<inspection::Connection> ConnectTo(const Place& place, const Target& target,
                                          std::optional<std::chrono::milliseconds> deadline) {
  auto config = kube::LoadKubeconfigs(place.kubeconfigs, target.context);
  if (!config) return tl::unexpected(FromKube(config.error()));
  if (deadline) config->deadline = *deadline;
  inspection::Connection connection;
  connection.run_dir = place.run_dir;
  connection.ns = target.ns.empty() ? config->default_namespace : target.ns;
  auto api = kube::MakeKubeClient(*config);
  if (!api) return tl::unexpected(FromKube(api.error()));
  connection.api = std::move(*api);
  return connection;
}

Outcome<inspection::Connection> Connect(const Target& target, const Surroundings& around,
                                        Purpose purpose) {
  auto place = FindPlace(target, around, purpose);
  if (!place) return tl::unexpected(place.error());
  if (!place->note.empty()) std::fprintf(stderr, "ringmaster: %s\n", place->note.c_str());
  return ConnectTo(*place, target);
}

}  // namespace ringmaster::cli
