#include "operator/cli/top_command.h"

#include <unistd.h>

#include <cstdio>
#include <thread>

#include "operator/cli/inspection.h"
#include "operator/cli/job_run.h"
#include "operator/cli/top.h"

namespace ringmaster::cli {
namespace {

constexpr char kClearScreen[] = "\033[H\033[J";

bool IsOver(const kube::Json& job) {
  return TrueCondition(job, "Succeeded") != nullptr || TrueCondition(job, "Failed") != nullptr;
}

}  // namespace

Outcome<void> Top(const TopOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kLook);
  if (!to) return tl::unexpected(to.error());
  const bool once = options.once || isatty(STDOUT_FILENO) == 0;
  auto earlier = Look(*to, options.job);
  if (!earlier) return tl::unexpected(earlier.error());
  SaySilent(*earlier);
  while (true) {
    std::this_thread::sleep_for(options.interval);
    auto now = Look(*to, options.job);
    if (!now) return tl::unexpected(now.error());
    std::printf("%s%s", once ? "" : kClearScreen, TopText(*earlier, *now).c_str());
    std::fflush(stdout);
    if (once || IsOver(now->job)) return {};
    earlier = std::move(now);
  }
}

}  // namespace ringmaster::cli
