#include "operator/cli/top_command.h"

#include <unistd.h>

#include <cstdio>
#include <thread>

#include "operator/cli/absence.h"
#include "operator/cli/flush.h"
#include "operator/cli/kube_failure.h"
#include "operator/cli/top.h"
#include "operator/inspection/inspection.h"
#include "operator/inspection/job_conditions.h"

namespace ringmaster::cli {
namespace {

constexpr char kClearScreen[] = "\033[H\033[J";

bool IsOver(const kube::Json& job) {
  return inspection::TrueCondition(job, "Succeeded") != nullptr ||
         inspection::TrueCondition(job, "Failed") != nullptr;
}

}  // namespace

Outcome<void> Top(const TopOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kLook);
  if (!to) return tl::unexpected(to.error());
  const bool once = options.once || isatty(STDOUT_FILENO) == 0;
  auto earlier = inspection::Look(*to, options.job);
  if (!earlier)
    return tl::unexpected(NotThere(*to, around, NameKind::kJob, options.job, earlier.error()));
  if (once) inspection::SaySilent(*earlier);  // else each frame says who is
  while (true) {
    std::this_thread::sleep_for(options.interval);
    auto now = inspection::Look(*to, options.job);
    if (!now) return tl::unexpected(FromKube(now.error()));
    std::printf("%s%s", once ? "" : kClearScreen, TopText(*earlier, *now).c_str());
    FlushOrEnd(stdout);
    if (once || IsOver(now->job)) return {};
    earlier = std::move(now);
  }
}

}  // namespace ringmaster::cli
