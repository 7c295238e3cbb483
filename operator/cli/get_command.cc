#include "operator/cli/get_command.h"

#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/fields/fields.h"
#include "operator/cli/absence.h"
#include "operator/cli/flush.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/object_text.h"
#include "operator/cli/observer.h"
#include "operator/cli/table.h"
#include "operator/cli/work_queue.h"
#include "operator/inspection/inspection.h"
#include "operator/inspection/sidecar_addresses.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr std::chrono::milliseconds kLook{500};  // how often to check that the run is alive

bool IsStructured(OutputFormat format) {
  return format == OutputFormat::kJson || format == OutputFormat::kYaml;
}

Outcome<std::vector<Json>> Jobs(const inspection::Connection& to, const Surroundings& around,
                                const GetOptions& options) {
  const std::string ns = options.all_namespaces ? "" : to.ns;
  if (options.job.empty()) {
    auto list = to.api->ListAll(kube::HorovodJobs(), ns, {});
    if (!list) return tl::unexpected(FromKube(list.error()));
    return std::move(list->items);
  }
  auto job = inspection::ReadJob(to, ns, options.job);
  if (!job) return tl::unexpected(NotThere(to, around, NameKind::kJob, options.job, job.error()));
  return std::vector<Json>{std::move(*job)};
}

// Adds what the sidecars say of their workers.
Outcome<std::vector<Json>> WithWorkers(const inspection::Connection& to, std::vector<Json> jobs) {
  constexpr std::size_t kJobsAtOnce = 8;  // the sidecars of each are asked in parallel, too
  std::vector<kube::Result<inspection::Inspection>> found(jobs.size());
  inspection::InParallel(
      jobs.size(), [&](std::size_t i) { found[i] = inspection::Inspect(to, std::move(jobs[i])); },
      kJobsAtOnce);
  std::vector<Json> full;
  for (const auto& one : found) {
    if (!one) return tl::unexpected(FromKube(one.error()));
    inspection::SaySilent(*one);
    full.push_back(inspection::WithWorkers(*one));
  }
  return full;
}

// Prints a job when its row has changed by more than the step; as an object at each change of it.
class Watcher {
 public:
  Watcher(const inspection::Connection& to, const GetOptions& options)
      : to_(to), options_(options), table_(options.all_namespaces), objects_(options.format) {}

  void OnJob(const Json& job, bool gone) {
    if (!options_.job.empty() && fields::TextAt(job, "/metadata/name") != options_.job) return;
    if (IsStructured(options_.format)) return Print(objects_.Next(gone ? job : Full(job)));
    const std::string state = gone ? "Deleted" : "";
    std::string& seen = seen_[fields::TextAt(job, "/metadata/uid")];
    const std::string now = WatchKey(job, state);
    if (now == seen) return;
    seen = now;
    Print(table_.Row(Full(job), state));
  }

 private:
  // With its workers, if they can be asked.
  Json Full(const Json& job) const {
    const auto found = inspection::Inspect(to_, job);
    return found ? inspection::WithWorkers(*found) : job;
  }
  static void Print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    FlushOrEnd(stdout);
  }

  const inspection::Connection& to_;
  const GetOptions& options_;
  WatchTable table_;
  ObjectText objects_;
  std::map<std::string, std::string> seen_;
};

Outcome<void> Watch(const inspection::Connection& to, const Surroundings& around,
                    const GetOptions& options) {
  if (auto first = Jobs(to, around, options); !first) return tl::unexpected(first.error());
  WorkQueue inbox;
  Watcher watcher(to, options);
  const Observer observer(
      to.api, kube::HorovodJobs(), options.all_namespaces ? "" : to.ns,
      [&](const Json& job, bool gone) { inbox.Post([&, job, gone] { watcher.OnJob(job, gone); }); },
      SayOnStandardError);
  while (to.run_dir.empty() || !HasEnded(to.run_dir))
    inbox.RunUntil(std::chrono::steady_clock::now() + kLook);
  return {};
}

}  // namespace

Outcome<void> Get(const GetOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kLook);
  if (!to) return tl::unexpected(to.error());
  if (options.watch) return Watch(*to, around, options);
  auto jobs = Jobs(*to, around, options);
  if (!jobs) return tl::unexpected(jobs.error());
  auto inspected = WithWorkers(*to, std::move(*jobs));
  if (!inspected) return tl::unexpected(inspected.error());
  const std::vector<Json>& full = *inspected;
  if (IsStructured(options.format)) {
    const Json object = options.job.empty()
                            ? Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", full}}
                            : full[0];
    std::fputs(ObjectText(options.format).Next(object).c_str(), stdout);
    return {};
  }
  if (full.empty()) {
    std::printf("no jobs in %s\n", options.all_namespaces
                                       ? "any namespace"
                                       : ("namespace " + to->ns + "; -A shows all").c_str());
    return {};
  }
  const bool wide = options.format == OutputFormat::kWide;
  std::fputs(JobsTable(full, {.pods = !options.job.empty() || wide,
                              .wide = wide,
                              .namespaces = options.all_namespaces,
                              .now = std::chrono::system_clock::now()})
                 .c_str(),
             stdout);
  return {};
}

}  // namespace ringmaster::cli
