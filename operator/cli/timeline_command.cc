#include "operator/cli/timeline_command.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "common/fields/fields.h"
#include "operator/cli/absence.h"
#include "operator/cli/flush.h"
#include "operator/cli/kube_failure.h"
#include "operator/inspection/inspection.h"
#include "operator/inspection/job_trace.h"
#include "operator/inspection/timeline_gathering.h"

namespace ringmaster::cli {
namespace {

Outcome<void> Write(const std::string& text, const std::string& file) {
  if (file == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return FlushAll(stdout);
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  if (!out)
    return Fail(ExitCode::kUsage,
                fmt::format("-o {}: can't be written: {}", file, std::strerror(errno)));
  out << text;
  out.close();
  if (!out)
    return Fail(ExitCode::kMachineLacks,
                fmt::format("{} can't be written: {}", file, std::strerror(errno)));
  return {};
}

// Printed to standard error, because the file may go to standard output.
void SayWhatIsLeftOut(const inspection::GatheredTimelines& gathered) {
  for (const std::string& missing : gathered.missing)
    std::fprintf(stderr, "ringmaster: left out: %s\n", missing.c_str());
}

std::size_t EventsOf(const inspection::JobTrace& trace) {
  std::size_t events = 0;
  for (const inspection::PodTrace& pod : trace.pods) events += pod.events.size();
  return events;
}

// Why there is nothing to write; empty if there is something.
std::string NothingThere(const kube::Json& job, const inspection::JobTrace& trace,
                         const TimelineOptions& options) {
  const bool has_begun = fields::IntegerAt(job, "/status/epoch") > 0;
  if (trace.workers() > 0 && EventsOf(trace) > 0) return "";
  if (!has_begun)
    return fmt::format(
        "{0} has not begun to train: there is nothing to write yet; `why {0}` says what it waits "
        "for",
        options.job);
  if (trace.workers() == 0)
    return fmt::format("no rank of {} has told what it did: nothing is written", options.job);
  return fmt::format("no rank of {} has done anything in the last {} s: nothing is written",
                     options.job, options.seconds);
}

std::string SummaryOf(const inspection::JobTrace& trace, const std::string& file) {
  const std::size_t workers = trace.workers();
  std::string text =
      fmt::format("{} rank{}, {} events of {:.1f} s: {}\n", workers, workers == 1 ? "" : "s",
                  EventsOf(trace), (trace.last_us() - trace.first_us()) / 1e6, file);
  return text + inspection::TimelineNotes(trace) +
         "Open it at https://ui.perfetto.dev or chrome://tracing.\n";
}

}  // namespace

Outcome<void> Timeline(const TimelineOptions& options, const Surroundings& around) {
  auto to = Connect(options.target, around, Purpose::kLook);
  if (!to) return tl::unexpected(to.error());
  auto job = inspection::ReadJob(*to, to->ns, options.job);
  if (!job) return tl::unexpected(NotThere(*to, around, NameKind::kJob, options.job, job.error()));
  auto pods = inspection::ReadPods(*to, to->ns, options.job);
  if (!pods) return tl::unexpected(FromKube(pods.error()));
  inspection::GatheredTimelines gathered =
      inspection::GatherTimelines(*to, *job, *pods, {.seconds = options.seconds});
  SayWhatIsLeftOut(gathered);
  const inspection::JobTrace trace = inspection::LayTogether(std::move(gathered.pods));
  if (const std::string why = NothingThere(*job, trace, options); !why.empty())
    return Fail(ExitCode::kJobFailed, why);
  const std::string file = options.file.empty() ? options.job + "-timeline.json" : options.file;
  if (auto written = Write(inspection::ChromeText(trace), file); !written) return written;
  std::fputs(SummaryOf(trace, file).c_str(), file == "-" ? stderr : stdout);
  return {};
}

}  // namespace ringmaster::cli
