#include "operator/cli/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/api/managed_by.h"
#include "operator/cli/change_lines.h"
#include "operator/cli/table.h"
#include "operator/inspection/job_conditions.h"
#include "operator/inspection/text_format.h"
#include "operator/inspection/troubles.h"

namespace ringmaster::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kWarnings = 5;
constexpr size_t kEvents = 25;
constexpr size_t kRanks = 16;

std::string NameOf(const inspection::Inspection& found) {
  return fields::TextAt(found.job, "/metadata/name");
}

uint64_t StepOf(const inspection::Inspection& found) {
  uint64_t step = 0;
  for (const auto& [pod, status] : found.answers) {
    step = std::max(step, status.step);
    for (const inspection::WorkerStatus& worker : status.workers)
      step = std::max(step, worker.step);
  }
  return step;
}

// "rank 0 12, rank 1 11": the step of each rank.
std::string StepsText(const inspection::Inspection& found) {
  std::map<int, uint64_t> steps;
  for (const auto& [pod, status] : found.answers)
    for (const inspection::WorkerStatus& worker : status.workers)
      if (worker.rank >= 0) steps[worker.rank] = worker.step;
  std::string text;
  size_t shown = 0;
  for (const auto& [rank, step] : steps) {
    if (++shown > kRanks) return text + ", ...";
    text += fmt::format("{}rank {} at {}", text.empty() ? "" : ", ", rank, step);
  }
  return text;
}

// "6 of 8 workers, view 1.4"
std::string SizeText(const Json& job) {
  const Json& status = fields::Member(job, "status");
  const auto workers = static_cast<size_t>(fields::Unsigned(status, "worldSize"));
  const auto wanted =
      static_cast<size_t>(std::max<int64_t>(0, fields::IntegerAt(job, "/spec/worker/replicas", 1)) *
                          std::max<int64_t>(1, fields::IntegerAt(job, "/spec/slotsPerWorker", 1)));
  const uint64_t epoch = fields::Unsigned(status, "epoch");
  return fmt::format("{}{}, {}", workers < wanted ? fmt::format("{} of ", workers) : "",
                     inspection::Counted(std::max(workers, wanted), "worker"),
                     epoch == 0 ? "no view yet" : "view " + inspection::ViewName(epoch));
}

// Bytes that went through collectives between two observations.
uint64_t BytesBetween(const inspection::Inspection& earlier, const inspection::Inspection& later) {
  uint64_t bytes = 0;
  for (const auto& [pod, status] : later.answers) {
    const auto before = earlier.answers.find(pod);
    if (before == earlier.answers.end()) continue;
    for (const inspection::WorkerStatus& worker : status.workers)
      for (const inspection::WorkerStatus& same : before->second.workers)
        if (same.slot == worker.slot) bytes += job::Between(same.times, worker.times).bytes;
  }
  return bytes;
}

bool Stands(const inspection::Inspection& found, const inspection::Inspection& earlier) {
  return StepOf(found) == StepOf(earlier) && BytesBetween(earlier, found) == 0;
}

// Describes a job without a condition that reports a problem.
std::string GoesOn(const inspection::Inspection& found, const inspection::Inspection* earlier,
                   double seconds) {
  const uint64_t step = StepOf(found);
  if (found.answers.empty())
    return fmt::format("trains ({}); no sidecar could be asked how far it is", SizeText(found.job));
  if (earlier == nullptr || earlier->answers.empty())
    return fmt::format("trains: step {}, {}", step, SizeText(found.job));
  const uint64_t before = StepOf(*earlier);
  if (step > before)
    return fmt::format("trains: step {}, {} more in {:.0f} s, {}; nothing holds it up", step,
                       step - before, seconds, SizeText(found.job));
  if (!Stands(found, *earlier))
    return fmt::format(
        "trains: {} bytes went through collectives in {:.0f} s, {}; no step was completed "
        "meanwhile "
        "(a long step, or a script that counts none)",
        BytesBetween(*earlier, found), seconds, SizeText(found.job));
  return fmt::format("stands at step {}: none was completed in {:.0f} s, {}", step, seconds,
                     SizeText(found.job));
}

std::string WhyUnknown(const Json& job) {
  if (const std::string manager = api::ForeignManagerOf(job); !manager.empty())
    return fmt::format(
        "has no status: runPolicy.managedBy is \"{}\", so Ringmaster's operator leaves it alone",
        manager);
  return fmt::format(
      "has no status: no operator has looked at it yet. Does one run, and does its "
      "watchNamespaces have \"{}\"?",
      fields::TextAt(job, "/metadata/namespace"));
}

std::string Indented(const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = title + "\n";
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string EventText(const inspection::EventLine& event, api::Time now) {
  return fmt::format("{:>5} ago  {}{}{}: {}", inspection::Age(event.at, now), event.reason,
                     event.about.empty() ? "" : ", " + event.about,
                     event.count > 1 ? fmt::format(" ({} times)", event.count) : "", event.note);
}

// A pod is not ready before its workers have called init(), so each has such events.
bool TellsNothing(const inspection::EventLine& event) {
  return event.reason == "Unhealthy" && event.note.starts_with("Readiness probe failed");
}

std::vector<std::string> Warnings(const inspection::Inspection& found, api::Time now) {
  std::vector<inspection::EventLine> events = inspection::EventLines(found.events);
  std::erase_if(events, [](const inspection::EventLine& event) {
    return !event.warning || TellsNothing(event);
  });
  const size_t skip = events.size() - std::min(events.size(), kWarnings);
  std::vector<std::string> lines;
  for (size_t i = skip; i < events.size(); ++i) lines.push_back(EventText(events[i], now));
  return lines;
}

// Omits the name of the program, which may be kubectl's plugin.
std::string NextStep(const inspection::Inspection& found, bool failed) {
  return fmt::format("More: logs {0}{1}, describe {0}", NameOf(found), failed ? "" : " --tail 20");
}

}  // namespace

std::string WhyText(const inspection::Inspection& found, const inspection::Inspection* earlier,
                    double seconds, const std::vector<std::string>& failure, api::Time now) {
  const std::string name = NameOf(found);
  if (const Json* done = inspection::TrueCondition(found.job, "Succeeded"))
    return fmt::format("{} has succeeded: {}\n", name, fields::Text(*done, "message"));
  const auto troubles = inspection::TroublesOf(found.job);
  const bool failed = inspection::TrueCondition(found.job, "Failed") != nullptr;
  std::string text;
  for (const std::string& line : failure) text += line + "\n";
  if (troubles.empty()) {
    const bool known = !fields::ListAt(found.job, "/status/conditions").empty();
    text += name + " " + (known ? GoesOn(found, earlier, seconds) : WhyUnknown(found.job)) + "\n";
  }
  for (size_t i = 0; i < troubles.size(); ++i) {
    if (failed && !failure.empty()) break;  // said already, in more words
    text += (i == 0 ? name + ": " : "  also: ") + inspection::TroubleText(troubles[i], now) + "\n";
  }
  const bool stands = troubles.empty() && earlier != nullptr && Stands(found, *earlier);
  if (const std::string steps = stands ? StepsText(found) : ""; !steps.empty())
    text += "  " + steps + "\n";
  if (const std::string versions = inspection::VersionsText(found); !versions.empty())
    text += "  also: " + versions + "\n";
  text += Indented("Pods:", inspection::PodTroubles(found, now));
  text += Indented("Last loss:", LastLossLines(found, now));
  text += Indented("Warnings:", Warnings(found, now));
  return text + NextStep(found, failed) + "\n";
}

namespace {

std::string Field(const std::string& name, const std::string& value) {
  return fmt::format("{:<13}{}\n", name + ":", value.empty() ? "-" : value);
}

std::string SpecText(const Json& job) {
  auto number = [&](const char* at) {
    const Json& value = fields::At(job, at);
    return value.is_number() ? value.dump() : "default";
  };
  const auto count = [&](const char* at) {
    return static_cast<size_t>(std::max<int64_t>(0, fields::IntegerAt(job, at, 1)));
  };
  return fmt::format("{} with {} each; minReplicas {}, maxReplicas {}",
                     inspection::Counted(count("/spec/worker/replicas"), "pod"),
                     inspection::Counted(count("/spec/slotsPerWorker"), "worker"),
                     number("/spec/elasticPolicy/minReplicas"),
                     number("/spec/elasticPolicy/maxReplicas"));
}

std::vector<std::string> ConditionLines(const Json& job, api::Time now) {
  std::vector<std::string> lines;
  for (const Json& condition : fields::ListAt(job, "/status/conditions"))
    lines.push_back(fmt::format("{:<11} {:<6} {:<22} {:>5}  {}", fields::Text(condition, "type"),
                                fields::Text(condition, "status"),
                                fields::Text(condition, "reason"),
                                inspection::Age(fields::Text(condition, "lastTransitionTime"), now),
                                fields::Text(condition, "message")));
  return lines;
}

std::string CountsText(const Json& status) {
  const auto again = fields::Integer(status, "restartsFromCheckpoint");
  return fmt::format(
      "{} lost steps, {}{} worker restarts, {} pods replaced, {} faults",
      fields::Integer(status, "stepsLost"),
      again == 0 ? ""
                 : fmt::format("{} from the checkpoint, ", inspection::Counted(again, "restart")),
      fields::Integer(status, "workerRestarts"), fields::Integer(status, "podsReplaced"),
      fields::Integer(status, "faults"));
}

}  // namespace

std::string DescribeText(const inspection::Inspection& found, api::Time now) {
  const Json& job = found.job;
  const Json& status = fields::Member(job, "status");
  std::string text = Field("Name", NameOf(found));
  text += Field("Namespace", fields::TextAt(job, "/metadata/namespace"));
  text += Field("Age", inspection::Age(fields::TextAt(job, "/metadata/creationTimestamp"), now));
  text += Field("State", fields::Text(status, "state"));
  text += Field("Wanted", SpecText(job));
  text += Field("Has", SizeText(job));
  if (!found.answers.empty()) text += Field("Step", std::to_string(StepOf(found)));
  text += Field("So far", CountsText(status));
  text += Indented("Conditions:", ConditionLines(job, now));
  text += found.pods.empty() ? "Pods:        none\n"
                             : "\n" + PodsTable(inspection::WithWorkers(found), false) + "\n";
  if (const std::string versions = inspection::VersionsText(found); !versions.empty())
    text += Field("Versions", versions);
  text += Indented("Not well:", inspection::PodTroubles(found, now));
  text += Indented("Changes:", ChangeLines(found, now));
  const auto events = inspection::EventLines(found.events);
  const size_t skip = events.size() - std::min(events.size(), kEvents);
  std::vector<std::string> lines;
  for (size_t i = skip; i < events.size(); ++i)
    lines.push_back((events[i].warning ? "! " : "  ") + EventText(events[i], now));
  return text + (lines.empty() ? "Events:      none\n" : Indented("Events:", lines));
}

}  // namespace ringmaster::cli
