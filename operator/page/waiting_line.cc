#include "operator/page/waiting_line.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/inspection/troubles.h"

namespace ringmaster::page {
namespace {

using Json = nlohmann::json;

// A waiting job, and what its place in the line depends on.
struct Waiting {
  const Json* job = nullptr;
  std::string state;
  std::optional<int> priority;
  int pods = 0;
  int least = 1;
  bool grows = false;
  api::Time since;  // since when it has stood in line
  bool in_kueue() const { return state == "Queued"; }
};

const Json* Scheduled(const Json& job) {
  for (const Json& condition : fields::ListAt(job, "/status/conditions"))
    if (fields::Text(condition, "type") == "Scheduled") return &condition;
  return nullptr;
}

bool IsFalse(const Json* condition) {
  return condition != nullptr && fields::Text(*condition, "status") == "False";
}

// A job that has ended, is suspended, or has a node for each pod doesn't wait.
bool Waits(const std::string& state, const Json& job) {
  if (state.empty() || state == "Pending" || state == "Queued") return true;
  const bool lives = state == "Running" || state == "Rebuilding" || state == "Held";
  return lives && IsFalse(Scheduled(job));
}

int LeastPods(const Json& job) {
  const Json& elastic = fields::At(job, "/spec/elasticPolicy");
  const auto least = static_cast<int>(fields::Integer(elastic, "minReplicas", 1));
  int allowed = 0;
  for (const Json& size : fields::List(elastic, "allowedSizes")) {
    if (!size.is_number_integer() || size.get<int>() < least) continue;
    allowed = allowed == 0 ? size.get<int>() : std::min(allowed, size.get<int>());
  }
  return std::max(least, allowed);
}

// As in the planner: since the job was accepted or resumed, or since it gave back what it had.
api::Time InLineSince(const Json& job, api::Time now) {
  const auto at = [&job](const char* where) { return api::ParseTime(fields::TextAt(job, where)); };
  const api::Time start =
      at("/status/startTime").value_or(at("/metadata/creationTimestamp").value_or(now));
  return std::max(start, at("/status/lastGivenBackTime").value_or(start));
}

// First come the jobs that hold too few pods, and those for which other jobs give up pods; then by
// priority; jobs that already train come later; then by age.
auto Rank(const Waiting& job) {
  const Json* scheduled = Scheduled(*job.job);
  const bool takes = scheduled != nullptr && fields::Text(*scheduled, "reason") == "Preempting";
  const bool is_short = job.pods > 0 && job.pods < job.least;
  return std::tuple(job.in_kueue(), !takes && !is_short, -job.priority.value_or(0), job.grows,
                    job.since, fields::TextAt(*job.job, "/metadata/namespace"),
                    fields::TextAt(*job.job, "/metadata/name"));
}

std::string PriorityClass(const Json& job) {
  const std::string of_template =
      fields::TextAt(job, "/spec/worker/template/spec/priorityClassName");
  if (!of_template.empty()) return of_template;
  return fields::TextAt(job, "/spec/runPolicy/schedulingPolicy/priorityClass");
}

std::string QueueOf(const Json& job) {
  const std::string queue = fields::TextAt(job, "/spec/runPolicy/schedulingPolicy/queue");
  if (!queue.empty()) return queue;
  return fields::Text(fields::At(job, "/metadata/labels"), api::kQueueLabel);
}

// What the job lacks: the reason why it has no nodes, else its first problem.
std::pair<std::string, std::string> WhyOf(const Json& job) {
  const Json* scheduled = Scheduled(job);
  const auto troubles = inspection::TroublesOf(job);
  if (!troubles.empty() && (troubles.front().type == "Created" || !IsFalse(scheduled)))
    return {troubles.front().reason, troubles.front().message};
  if (IsFalse(scheduled))
    return {fields::Text(*scheduled, "reason"), fields::Text(*scheduled, "message")};
  return {"", "the operator has not looked at it yet"};
}

// A growing job has waited since it lacked pods, not since its start.
double Waited(const Waiting& job, api::Time now) {
  api::Time since = job.since;
  if (const Json* scheduled = Scheduled(*job.job); job.grows && scheduled != nullptr)
    since = api::ParseTime(fields::Text(*scheduled, "lastTransitionTime")).value_or(since);
  return std::max(0.0, std::chrono::duration<double>(now - since).count());
}

Json Entry(const Waiting& job, api::Time now) {
  auto [reason, lacks] = WhyOf(*job.job);
  return {{"namespace", fields::TextAt(*job.job, "/metadata/namespace")},
          {"name", fields::TextAt(*job.job, "/metadata/name")},
          {"state", job.state},
          {"place", nullptr},
          {"queue", job.in_kueue() ? QueueOf(*job.job) : ""},
          {"priority", job.priority ? Json(*job.priority) : Json()},
          {"priorityClass", PriorityClass(*job.job)},
          {"pods", job.pods},
          {"least", job.least},
          {"wanted", fields::IntegerAt(*job.job, "/spec/worker/replicas")},
          {"grows", job.grows},
          {"waited", Waited(job, now)},
          {"reason", std::move(reason)},
          {"lacks", std::move(lacks)}};
}

}  // namespace

Json WaitingLine(const std::vector<Json>& jobs, const PriorityOf& priority_of, api::Time now,
                 std::size_t most) {
  std::vector<Waiting> line;
  for (const Json& job : jobs) {
    const std::string state = fields::TextAt(job, "/status/state");
    if (!Waits(state, job)) continue;
    Waiting waiting{.job = &job, .state = state, .priority = priority_of(job)};
    waiting.pods =
        static_cast<int>(fields::IntegerAt(job, "/status/replicaStatuses/Worker/active"));
    waiting.least = LeastPods(job);
    waiting.grows = waiting.pods >= waiting.least && state != "Pending" && !waiting.in_kueue();
    waiting.since = InLineSince(job, now);
    line.push_back(std::move(waiting));
  }
  std::sort(line.begin(), line.end(),
            [](const Waiting& a, const Waiting& b) { return Rank(a) < Rank(b); });
  Json entries = Json::array();
  for (const Waiting& waiting : line) {
    if (entries.size() == most) break;
    entries.push_back(Entry(waiting, now));
    if (!waiting.in_kueue()) entries.back()["place"] = entries.size();
  }
  return entries;
}

}  // namespace ringmaster::page
