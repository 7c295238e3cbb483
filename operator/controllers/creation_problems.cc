#include "operator/controllers/creation_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace ringmaster::controllers {
namespace {

constexpr char kInvalidTemplate[] = "InvalidPodTemplate";
constexpr char kNameTaken[] = "PodNameTaken";
constexpr char kDegraded[] = "Degraded";
// Remains of a former job of this name block creation for a moment, so one failure is not reported.
// A refused pod is reported at once.
constexpr int kNewsAfter = 5;

struct Words {
  const char* reason;  // the condition's reason begins with this
  const char* text;
};

Words WordsFor(Needed what) {
  switch (what) {
    case Needed::kPods:
    case Needed::kDryRun:
      return {"Pods", "pods"};
    case Needed::kRecord:
      return {"Record", "record (a ConfigMap)"};
    case Needed::kRequests:
      return {"Requests", "ProvisioningRequest or PodTemplate"};
    default:
      return {"Objects", "Service, Secret, PodDisruptionBudget or NetworkPolicy"};
  }
}

struct Explanation {
  std::string reason;
  std::string message;  // the API server's message follows
};

bool IsOfPods(Needed what) { return what == Needed::kPods || what == Needed::kDryRun; }

bool MessageContains(const kube::Error& error, const char* text) {
  return error.message.find(text) != std::string::npos;
}

// A policy or webhook that denies a request chooses the status code, often the one for an invalid
// object, so only the message tells these cases apart.
bool AdmissionDenied(const kube::Error& error) {
  return MessageContains(error, "denied the request") || MessageContains(error, "denied request");
}

// nullopt: the problem is not one that people must act on.
std::optional<Explanation> Explain(Needed what, const kube::Error& error) {
  const Words words = WordsFor(what);
  const auto explanation = [&](const char* reason, const char* format) {
    return Explanation{fmt::format("{}{}", words.reason, reason),
                       fmt::format(fmt::runtime(format), words.text)};
  };
  if (NamespaceGoes(error)) return Explanation{"NamespaceTerminating", "the namespace goes: "};
  if (AdmissionDenied(error)) return explanation("Forbidden", "admission refuses the job's {}: ");
  switch (error.code) {
    case kube::ErrorCode::kInvalid:
      if (!IsOfPods(what))
        return explanation("Invalid", "the API server calls the job's {} wrong: ");
      return Explanation{
          kInvalidTemplate,
          "the API server refuses the pods of spec.worker.template (paths are the pod's): "};
    case kube::ErrorCode::kForbidden:
      return explanation("Forbidden", "the API server forbids the job's {}: ");
    case kube::ErrorCode::kAlreadyExists:
      if (!IsOfPods(what)) return Explanation{"ObjectNameTaken", ""};
      return Explanation{kNameTaken, "a pod of this name is there and not this job's: "};
    case kube::ErrorCode::kUnavailable:
      // 5xx: the API server answers, so there is something to report; an unreachable one is not the
      // job's problem.
      if (error.http_status < 500) return std::nullopt;
      return explanation("Failed",
                         MessageContains(error, "failed calling webhook")
                             ? "an admission webhook that is asked about the job's {} fails: "
                             : "the API server fails to make the job's {}: ");
    case kube::ErrorCode::kInternal:
      if (what != Needed::kRecord || error.http_status != 0) return std::nullopt;
      return explanation("Unusable", "the job's {} can't be used: ");
    default:
      return std::nullopt;
  }
}

// A condition that was good and stays good is not changed.
void Set(const api::Condition& wanted, api::Status* status) {
  const auto at = std::find_if(status->conditions.begin(), status->conditions.end(),
                               [&](const api::Condition& c) { return c.type == wanted.type; });
  if (at == status->conditions.end()) {
    status->conditions.push_back(wanted);
    return;
  }
  const bool good = wanted.type == kDegraded ? !wanted.status : wanted.status;
  if (at->status == wanted.status && good) return;
  const std::string since =
      at->status == wanted.status ? at->last_transition_time : wanted.last_transition_time;
  *at = wanted;
  at->last_transition_time = since;
}

}  // namespace

bool NamespaceGoes(const kube::Error& error) {
  return error.code == kube::ErrorCode::kForbidden &&
         MessageContains(error, "because it is being terminated");
}

std::chrono::milliseconds CreationProblems::Pause(const api::HorovodJob& job, Needed what,
                                                  Clock::time_point now) const {
  const sync::MutexLock lock(&mu_);
  const auto at = problems_.find({job.uid, what});
  if (at == problems_.end() || at->second.generation != job.generation ||
      at->second.retry_at <= now) {
    return {};
  }
  return std::chrono::ceil<std::chrono::milliseconds>(at->second.retry_at - now);
}

std::string ProblemText(Needed what, const kube::Error& error) {
  const auto explanation = Explain(what, error);
  // Of these the conditions say nothing: they are mostly over at the next try.
  const std::string why =
      explanation ? explanation->message
                  : fmt::format("a request for the job's {} failed: ", WordsFor(what).text);
  return why + error.message;
}

void CreationProblems::Failed(const api::HorovodJob& job, Needed what, const kube::Error& error,
                              Clock::time_point now) {
  const auto explanation = Explain(what, error);
  if (!explanation) return;
  const sync::MutexLock lock(&mu_);
  Problem& problem = problems_[{job.uid, what}];
  if (problem.generation != job.generation) problem = {};
  problem.shown = true;
  const bool wrong = explanation->reason == kInvalidTemplate;
  const auto pause = runtime::WorkQueue::Backoff(backoff_, problem.failures++);
  problem.reason = explanation->reason;
  problem.message = ProblemText(what, error);
  problem.generation = job.generation;
  problem.retry_at = now + (wrong ? std::chrono::milliseconds(kRetry) : pause);
  const bool by_rule =
      error.code == kube::ErrorCode::kForbidden || error.code == kube::ErrorCode::kInvalid;
  if (by_rule) problem.refused_at = now;
}

void CreationProblems::NameIsTaken(const api::HorovodJob& job, Needed what, const std::string& pod,
                                   Clock::time_point now) {
  const sync::MutexLock lock(&mu_);
  Problem& problem = problems_[{job.uid, what}];
  if (problem.generation != job.generation) problem = {};
  problem.shown = true;
  problem.reason = kNameTaken;
  problem.message = "pod " + pod + " of an earlier job is still ending; its name is waited for";
  problem.generation = job.generation;
  problem.retry_at = now + kNameRetry;
}

void CreationProblems::Worked(const api::HorovodJob& job, Needed what) {
  const sync::MutexLock lock(&mu_);
  problems_.erase({job.uid, what});
}

void CreationProblems::DryRunWorked(const api::HorovodJob& job, Clock::time_point now) {
  const sync::MutexLock lock(&mu_);
  problems_.erase({job.uid, Needed::kDryRun});
  const auto pods = problems_.find({job.uid, Needed::kPods});
  if (pods == problems_.end() || now < pods->second.retry_at) return;
  pods->second.shown = false;
  if (!pods->second.refused_at) problems_.erase(pods);
}

bool CreationProblems::WasRefused(const api::HorovodJob& job, Needed what,
                                  Clock::time_point now) const {
  const sync::MutexLock lock(&mu_);
  const auto at = problems_.find({job.uid, what});
  if (at == problems_.end() || at->second.generation != job.generation) return false;
  return at->second.refused_at && now < *at->second.refused_at + kRefusalCounts;
}

void CreationProblems::Forget(const std::string& job_uid) {
  const sync::MutexLock lock(&mu_);
  std::erase_if(problems_, [&](const auto& entry) { return entry.first.first == job_uid; });
}

void CreationProblems::Show(const api::HorovodJob& job, bool has_pods, const std::string& now,
                            api::Status* status) const {
  const sync::MutexLock lock(&mu_);
  const auto problem = std::find_if(problems_.begin(), problems_.end(), [&](const auto& entry) {
    return entry.first.first == job.uid && entry.second.shown &&
           (IsOfPods(entry.first.second) || entry.second.failures >= kNewsAfter);
  });
  const Problem* found = problem == problems_.end() ? nullptr : &problem->second;
  // A job that has trained was created, whatever it lacks later.
  const bool began = status->epoch != 0;
  const api::Condition created = {
      .type = "Created",
      .status = found == nullptr || began,
      .reason = found == nullptr || began ? "Accepted" : found->reason,
      .message = found == nullptr || began ? "the operator has taken up the job" : found->message,
      .last_transition_time = now,
      .observed_generation = job.generation};
  Set(created, status);
  if (began && (found != nullptr || status->Is(kDegraded))) {
    Set({.type = kDegraded,
         .status = found != nullptr,
         .reason = found == nullptr ? "AllMade" : found->reason,
         .message = found == nullptr ? "all that the job needs could be made" : found->message,
         .last_transition_time = now,
         .observed_generation = job.generation},
        status);
  }
  const bool wrong = found != nullptr && found->reason == kInvalidTemplate;
  if (wrong && !has_pods) status->state = "Invalid";
}

}  // namespace ringmaster::controllers
