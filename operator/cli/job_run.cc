#include "operator/cli/job_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/cli/text_format.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

template <class T>
T NumberAt(const Json& object, const char* pointer, T otherwise) {
  Json::json_pointer at(pointer);
  return object.contains(at) && object[at].is_number() ? object[at].get<T>() : otherwise;
}

// The exit code of a container that failed, if one has.
std::optional<int> FailedContainer(const Json& pod) {
  for (const char* list : {"/status/containerStatuses", "/status/initContainerStatuses"}) {
    Json::json_pointer at(list);
    if (!pod.contains(at)) continue;
    for (const Json& status : pod[at])
      if (int code = NumberAt(status, "/state/terminated/exitCode", 0)) return code;
  }
  return std::nullopt;
}

}  // namespace

const Json* TrueCondition(const Json& object, const std::string& type) {
  static const Json::json_pointer kConditions("/status/conditions");
  if (!object.contains(kConditions)) return nullptr;
  for (const Json& condition : object[kConditions]) {
    if (fields::TextAt(condition, "/type") == type &&
        fields::TextAt(condition, "/status") == "True")
      return &condition;
  }
  return nullptr;
}

void JobRun::OnJob(const Json& job, bool gone) {
  job_ = job;
  if (end_) return;
  for (const char* type : {"Succeeded", "Failed"}) {
    const Json* condition = TrueCondition(job, type);
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
  int wanted = NumberAt(job_, "/spec/worker/replicas", 1);
  int running = 0;
  for (const auto& [name, pod] : pods_)
    running += fields::TextAt(pod, "/status/phase") == "Running";
  std::string text = fmt::format("starting: {} of {} pods run", running, wanted);
  if (running >= wanted) text = "waiting for the workers to call init()";
  return text;
}

std::string JobRun::ProgressLine(int bar) const {
  if (progress_.epoch() == 0) return StartingText();
  std::string drawn = Bar(progress_, bar);
  return (drawn.empty() ? "" : drawn + " ") + ProgressText(progress_);
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

std::vector<std::string> JobRun::PodsToBlame() const {
  std::vector<std::string> failed, all;
  for (const auto& [name, pod] : pods_) {
    all.push_back(name);
    if (FailedContainer(pod)) failed.push_back(name);
  }
  return failed.empty() ? all : failed;
}

int64_t JobRun::StepsLost() const {
  return std::max(progress_.steps_lost(), NumberAt<int64_t>(job_, "/status/stepsLost", 0));
}

Json JobRun::Summary(const std::string& exit_reason, double seconds) const {
  Json views = Json::array();
  for (const auto& [epoch, view] : progress_.views()) {
    const job::Rebuild& rebuild = view.rebuild;
    views.push_back({{"epoch", epoch},
                     {"view", ViewName(epoch)},
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
                              Counted(progress_.world_size(), "worker")));
  std::string values;
  for (const auto& [name, value] : progress_.values())
    if (name != "total_steps" && name != "samples")
      values += fmt::format("  {} {}", name, Number(value));
  if (!values.empty()) lines.push_back("  last values:" + values);
  bool changes = false;
  for (const auto& [epoch, view] : progress_.views()) {
    if (view.old_size == 0) continue;
    if (!changes)
      lines.push_back(fmt::format("  {:<8} {:<13} {:>9} {:>8}   by phase (ms)", "view", "reason",
                                  "workers", "ms"));
    changes = true;
    const job::Rebuild& rebuild = view.rebuild;
    lines.push_back(
        fmt::format("  {:<8} {:<13} {:>9} {:>8.0f}   {}", ViewName(epoch), rebuild.reason,
                    fmt::format("{} -> {}", view.old_size, rebuild.world_size),
                    job::TotalSeconds(rebuild.seconds) * 1e3, PhasesText(rebuild.seconds)));
  }
  return lines;
}

}  // namespace ringmaster::cli
