#include "operator/cli/job_run.h"

#include <fmt/format.h>

#include <sstream>

#include "common/fields/fields.h"
#include "operator/cli/log_lines.h"
#include "operator/cli/progress_text.h"
#include "operator/inspection/job_conditions.h"
#include "operator/inspection/troubles.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

// What a job without a view waits for.
std::string StartingText(const Json& job, const JobPods& pods, const std::string& held_by) {
  if (!held_by.empty()) return "starting: " + held_by;
  const auto wanted = fields::IntegerAt(job, "/spec/worker/replicas", 1);
  const int running = pods.CountRunning();
  if (running >= wanted) return "waiting for the workers to call init()";
  return fmt::format("starting: {} of {} pods run", running, wanted);
}

}  // namespace

void JobRun::OnJob(const Json& job, bool gone) {
  job_ = job;
  if (end_) return;
  for (const char* type : {"Succeeded", "Failed"}) {
    const Json* condition = inspection::TrueCondition(job, type);
    if (!condition) continue;
    end_ = JobEnd{std::string(type) == "Succeeded", fields::TextAt(*condition, "/reason"),
                  fields::TextAt(*condition, "/message")};
    return;
  }
  if (gone) end_ = JobEnd{false, "Deleted", "the job was deleted while it ran"};
}

void JobRun::OnPod(const Json& pod, bool gone) {
  const std::string name = fields::TextAt(pod, "/metadata/name");
  if (const auto code = ExitCodeOfFailed(pod)) progress_.NoteExit(name, *code);
  pods_.Observe(pod, gone);
  if (gone) progress_.Forget(name);
}

std::vector<std::string> JobRun::TakeLines(TimePoint now, bool last) {
  std::vector<std::string> lines;
  for (const ViewRecord& view : progress_.TakeSettled(now, last))
    lines.push_back(ChangeText(view, progress_));
  return lines;
}

std::string JobRun::HeldUpBy() const {
  const auto troubles = inspection::TroublesOf(job_);
  return troubles.empty() ? "" : troubles.front().message;
}

std::string JobRun::ProgressLine(int bar) const {
  const std::string held_by = HeldUpBy();
  if (progress_.views().epoch() == 0) return StartingText(job_, pods_, held_by);
  const std::string drawn = Bar(progress_, bar);
  return (drawn.empty() ? "" : drawn + " ") + ProgressText(progress_) +
         (held_by.empty() ? "" : "  " + held_by);
}

bool JobRun::HadView() const {
  return progress_.views().epoch() > 0 || fields::IntegerAt(job_, "/status/epoch") > 0;
}

std::optional<std::string> JobRun::OutputOfRankZero(const std::string& pod,
                                                    const std::string& line) const {
  return OutputOf(RankZero().value_or(FirstWorker()), pod, line);
}

std::optional<std::string> JobRun::OutputOf(const inspection::RankHolder& worker,
                                            const std::string& pod, const std::string& line) const {
  if (worker.pod != pod || !pods_.Had(pod)) return std::nullopt;
  return LineOfWorker(FirstNumberOf(pod) + worker.slot, LabelsLines(job_), line);
}

int JobRun::FirstNumberOf(const std::string& pod) const {
  const auto known = pods_.IndexOf(pod);
  const int index = known ? *known : inspection::IndexInName(pod, name_).value_or(0);
  return index * static_cast<int>(fields::IntegerAt(job_, "/spec/slotsPerWorker", 1));
}

std::string JobRun::PodToBlame() const {
  const std::string why = end_ ? end_->message : "";
  // A pod whose worker was to be restarted runs until the job fails, and may be gone by now.
  if (const std::string named = pods_.NamedIn(why); !named.empty()) return named;
  // The job may have failed before anything was known about this pod.
  std::istringstream words(why);
  for (std::string word; words >> word;)
    if (inspection::IndexInName(word, name_)) return word;
  return pods_.FailedFirst();
}

}  // namespace ringmaster::cli
