#include "operator/cli/job_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/cli/progress_text.h"
#include "operator/inspection/job_conditions.h"
#include "operator/inspection/text_format.h"
#include "operator/inspection/troubles.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

template <class T>
T NumberAt(const Json& object, const char* pointer, T otherwise) {
  Json::json_pointer at(pointer);
  return object.contains(at) && object[at].is_number() ? object[at].get<T>() : otherwise;
}

// The exit code of the first failed container, if there is one.
std::optional<int> FailedContainer(const Json& pod) {
  for (const char* list : {"/status/containerStatuses", "/status/initContainerStatuses"}) {
    Json::json_pointer at(list);
    if (!pod.contains(at)) continue;
    for (const Json& status : pod[at])
      if (int code = NumberAt(status, "/state/terminated/exitCode", 0)) return code;
  }
  return std::nullopt;
}

// When the first container of the pod ended, in the kubelet's format, whose texts compare like
// times.
std::string EndedAt(const Json& pod) {
  std::string first;
  for (const Json& status : fields::ListAt(pod, "/status/containerStatuses")) {
    const std::string at = fields::TextAt(status, "/state/terminated/finishedAt");
    if (!at.empty() && (first.empty() || at < first)) first = at;
  }
  return first;
}

}  // namespace

bool IsLaunchersAccount(std::string_view line) {
  return line.starts_with("ringmaster-launcher: ") &&
         !line.starts_with("ringmaster-launcher: error: ");
}

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
  std::string name = fields::TextAt(pod, "/metadata/name");
  if (auto code = FailedContainer(pod)) progress_.NoteExit(name, *code);
  indexes_[name] =
      std::atoi(fields::Text(fields::At(pod, "/metadata/labels"), api::kReplicaIndexLabel).c_str());
  if (gone) {
    pods_.erase(name);
    progress_.Forget(name);
  } else {
    pods_[name] = pod;
  }
}

std::vector<std::string> JobRun::TakeLines(TimePoint now, bool last) {
  std::vector<std::string> lines = std::exchange(lines_, {});
  for (const ViewRecord& view : progress_.TakeSettled(now, last))
    lines.push_back(ChangeText(view, progress_));
  return lines;
}

std::string JobRun::StartingText() const {
  if (const std::string held_by = HeldUpBy(); !held_by.empty()) return "starting: " + held_by;
  int wanted = NumberAt(job_, "/spec/worker/replicas", 1);
  int running = 0;
  for (const auto& [name, pod] : pods_)
    running += fields::TextAt(pod, "/status/phase") == "Running";
  std::string text = fmt::format("starting: {} of {} pods run", running, wanted);
  if (running >= wanted) text = "waiting for the workers to call init()";
  return text;
}

std::string JobRun::HeldUpBy() const {
  const auto troubles = inspection::TroublesOf(job_);
  return troubles.empty() ? "" : troubles.front().message;
}

std::string JobRun::ProgressLine(int bar) const {
  if (progress_.epoch() == 0) return StartingText();
  std::string drawn = Bar(progress_, bar);
  const std::string held_by = HeldUpBy();
  return (drawn.empty() ? "" : drawn + " ") + ProgressText(progress_) +
         (held_by.empty() ? "" : "  " + held_by);
}

std::map<std::string, std::string> JobRun::SidecarAddresses() const {
  std::map<std::string, std::string> addresses;
  for (const auto& [name, pod] : pods_) {
    std::string address =
        fields::Text(fields::At(pod, "/metadata/annotations"), api::kHttpAnnotation);
    if (!address.empty()) addresses[name] = address;
  }
  return addresses;
}

bool JobRun::HadView() const {
  return progress_.epoch() > 0 || NumberAt<uint64_t>(job_, "/status/epoch", 0) > 0;
}

std::string JobRun::FirstPod() const {
  const auto first =
      std::min_element(indexes_.begin(), indexes_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return first == indexes_.end() ? "" : first->first;
}

std::optional<std::string> JobRun::OutputOfRankZero(const std::string& pod,
                                                    const std::string& line) const {
  return OutputOf(RankZero().value_or(inspection::RankStatus{FirstPod(), 0, 0}), pod, line);
}

std::optional<std::string> JobRun::OutputOf(const inspection::RankStatus& worker,
                                            const std::string& pod, const std::string& line) const {
  if (worker.pod != pod || !HadPod(pod)) return std::nullopt;
  const std::string label = fmt::format("[{}] ", FirstNumberOf(pod) + worker.slot);
  if (IsLaunchersAccount(line)) return std::nullopt;
  if (!LabelsLines()) return label + line;
  return line.starts_with(label) ? std::optional(line) : std::nullopt;
}

int JobRun::FirstNumberOf(const std::string& pod) const {
  const auto known = indexes_.find(pod);
  const int index =
      known != indexes_.end() ? known->second : inspection::IndexInName(pod, name_).value_or(0);
  return index * NumberAt(job_, "/spec/slotsPerWorker", 1);
}

// The launcher adds no number if the pod has only one process.
bool JobRun::LabelsLines() const {
  return NumberAt(job_, "/spec/slotsPerWorker", 1) +
             NumberAt(job_, "/spec/elasticPolicy/standbyPerPod", 0) >
         1;
}

std::string JobRun::PodToBlame() const {
  const std::string why = end_ ? " " + end_->message + " " : "";
  // A pod whose worker was to be restarted runs until the job fails, and may be gone by now.
  for (const auto& [name, index] : indexes_)
    if (why.find(" " + name + " ") != std::string::npos) return name;
  // The job may have failed before anything was known about this pod.
  std::istringstream words(why);
  for (std::string word; words >> word;)
    if (inspection::IndexInName(word, name_)) return word;
  std::string failed, failed_at;
  for (const auto& [name, pod] : pods_) {
    if (!FailedContainer(pod)) continue;
    const std::string at = EndedAt(pod);
    if (!failed.empty() && at >= failed_at) continue;
    failed = name;
    failed_at = at;
  }
  return failed;
}

int64_t JobRun::StepsLost() const {
  return std::max(progress_.steps_lost(), NumberAt<int64_t>(job_, "/status/stepsLost", 0));
}

int64_t JobRun::RestartsFromCheckpoint() const {
  return NumberAt<int64_t>(job_, "/status/restartsFromCheckpoint", 0);
}

Json JobRun::Summary(const std::string& exit_reason, double seconds) const {
  Json views = Json::array();
  for (const auto& [epoch, view] : progress_.views()) {
    const job::Rebuild& rebuild = view.rebuild;
    views.push_back({{"epoch", epoch},
                     {"view", inspection::ViewName(epoch)},
                     {"reason", rebuild.reason},
                     {"planned", rebuild.planned},
                     {"members", rebuild.members},
                     {"worldSize", rebuild.world_size},
                     {"stepsLost", rebuild.steps_lost},
                     {"seconds", rebuild.seconds}});
  }
  return {{"job", name_},
          {"namespace", ns_},
          {"exitReason", exit_reason},
          {"message", end_ ? end_->message : ""},
          {"steps", progress_.step()},
          {"stepsLost", StepsLost()},
          {"restartsFromCheckpoint", RestartsFromCheckpoint()},
          {"worldSize", progress_.world_size()},
          {"seconds", seconds},
          {"values", progress_.values()},
          {"views", views}};
}

std::vector<std::string> JobRun::SummaryLines(const std::string& exit_reason,
                                              double seconds) const {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{}: {} after {:.1f} s, {} steps, {} lost, {} at the end", name_,
                              exit_reason, seconds, progress_.step(), StepsLost(),
                              inspection::Counted(progress_.world_size(), "worker")));
  if (const int64_t again = RestartsFromCheckpoint(); again > 0) {
    lines.push_back(fmt::format(
        "  began again from its checkpoint {}: no worker was left that held the state. The steps "
        "since that was written are lost, too, and not counted above",
        again == 1 ? "once" : fmt::format("{} times", again)));
  }
  std::string values;
  for (const auto& [name, value] : progress_.values())
    if (name != "total_steps" && name != "samples")
      values += fmt::format("  {} {}", name, inspection::Number(value));
  if (!values.empty()) lines.push_back("  last values:" + values);
  bool changes = false;
  for (const auto& [epoch, view] : progress_.views()) {
    if (view.old_size == 0) continue;
    if (!changes)
      lines.push_back(fmt::format("  {:<8} {:<13} {:>9} {:>8}   by phase (ms)", "view", "reason",
                                  "workers", "ms"));
    changes = true;
    const job::Rebuild& rebuild = view.rebuild;
    lines.push_back(fmt::format(
        "  {:<8} {:<13} {:>9} {:>8.0f}   {}", inspection::ViewName(epoch), rebuild.reason,
        fmt::format("{} -> {}", view.old_size, rebuild.world_size),
        job::TotalSeconds(rebuild.seconds) * 1e3, inspection::PhasesText(rebuild.seconds)));
  }
  return lines;
}

}  // namespace ringmaster::cli
