#include "operator/cli/explain_commands.h"

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "common/fields/fields.h"
#include "operator/cli/absence.h"
#include "operator/cli/explain.h"
#include "operator/cli/failure_report.h"
#include "operator/cli/job_run.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/pod_log.h"
#include "operator/inspection/inspection.h"
#include "operator/inspection/job_conditions.h"
#include "operator/inspection/troubles.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr std::chrono::seconds kBetweenLooks{2};

std::vector<std::string> FailureOf(const inspection::Connection& to,
                                   const inspection::Inspection& found) {
  JobRun run(to.ns, fields::TextAt(found.job, "/metadata/name"));
  for (const Json& pod : found.pods) run.OnPod(pod, false);
  run.OnJob(found.job, false);
  if (!run.end() || run.end()->succeeded) return {};
  return FailureLinesOf(to.api.get(), run, run.end()->message, false,
                        to.run_dir.empty() ? "" : to.run_dir / "logs");
}

void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }

}  // namespace

Outcome<void> Describe(const DescribeOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kLook);
  if (!to) return tl::unexpected(to.error());
  auto found = inspection::Look(*to, options.job);
  if (!found)
    return tl::unexpected(NotThere(*to, around, NameKind::kJob, options.job, found.error()));
  inspection::SaySilent(*found);
  inspection::AddEvents(*to, &*found);
  Print(DescribeText(*found, std::chrono::system_clock::now()));
  return {};
}

Outcome<void> Why(const WhyOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kLook);
  if (!to) return tl::unexpected(to.error());
  auto job = inspection::ReadJob(*to, to->ns, options.job);
  if (!job) return tl::unexpected(NotThere(*to, around, NameKind::kJob, options.job, job.error()));
  if (inspection::TrueCondition(*job, "Succeeded") != nullptr) {
    // Its sidecars have ended or are about to, and a look would wait for their answers in vain.
    Print(WhyText({std::move(*job), {}, {}, {}, {}}, nullptr, 0, {},
                  std::chrono::system_clock::now()));
    return {};
  }
  auto found = inspection::Inspect(*to, std::move(*job));
  if (!found) return tl::unexpected(FromKube(found.error()));
  inspection::Inspection earlier;
  const bool twice = inspection::TroublesOf(found->job).empty() && !found->answers.empty();
  if (twice) {
    earlier = std::move(*found);
    std::this_thread::sleep_for(kBetweenLooks);
    found = inspection::Look(*to, options.job);
    if (!found) return tl::unexpected(FromKube(found.error()));
  }
  inspection::SaySilent(*found);
  inspection::AddEvents(*to, &*found);
  Print(WhyText(*found, twice ? &earlier : nullptr,
                std::chrono::duration<double>(kBetweenLooks).count(), FailureOf(*to, *found),
                std::chrono::system_clock::now()));
  return {};
}

}  // namespace ringmaster::cli
