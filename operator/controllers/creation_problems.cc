#include "operator/controllers/creation_problems.h"

#include <algorithm>

namespace ringmaster::controllers {
namespace {

constexpr char kInvalidTemplate[] = "InvalidPodTemplate";
constexpr char kNameTaken[] = "PodNameTaken";

struct Sentence {
  const char* reason;
  const char* begin;
};

// Null: nothing that people have to see to.
const Sentence* Explain(kube::ErrorCode code) {
  static constexpr Sentence kInvalid = {
      kInvalidTemplate,
      "the API server refuses the pods of spec.worker.template (paths are the pod's): "};
  static constexpr Sentence kForbidden = {"PodsForbidden",
                                          "the API server forbids the job's pods: "};
  static constexpr Sentence kTaken = {kNameTaken,
                                      "a pod of this name is there and not this job's: "};
  switch (code) {
    case kube::ErrorCode::kInvalid:
      return &kInvalid;
    case kube::ErrorCode::kForbidden:
      return &kForbidden;
    case kube::ErrorCode::kAlreadyExists:
      return &kTaken;
    default:
      return nullptr;
  }
}

}  // namespace

std::chrono::milliseconds CreationProblems::Pause(const api::HorovodJob& job,
                                                  Clock::time_point now) const {
  const std::lock_guard lock(mu_);
  const auto at = problems_.find(job.uid);
  if (at == problems_.end() || at->second.generation != job.generation ||
      at->second.retry_at <= now) {
    return {};
  }
  return std::chrono::ceil<std::chrono::milliseconds>(at->second.retry_at - now);
}

bool CreationProblems::Failed(const api::HorovodJob& job, const kube::Error& error,
                              Clock::time_point now) {
  const Sentence* sentence = Explain(error.code);
  if (sentence == nullptr) return false;
  const bool wrong = error.code == kube::ErrorCode::kInvalid;
  const std::lock_guard lock(mu_);
  problems_[job.uid] = {sentence->reason, sentence->begin + error.message, job.generation,
                        wrong ? now + kRetry : now};
  return true;
}

void CreationProblems::NameIsTaken(const api::HorovodJob& job, const std::string& pod,
                                   Clock::time_point now) {
  const std::lock_guard lock(mu_);
  problems_[job.uid] = {kNameTaken,
                        "pod " + pod + " of an earlier job is still ending; its name is waited for",
                        job.generation, now + kNameRetry};
}

void CreationProblems::Worked(const api::HorovodJob& job) { Forget(job.uid); }

void CreationProblems::Forget(const std::string& job_uid) {
  const std::lock_guard lock(mu_);
  problems_.erase(job_uid);
}

void CreationProblems::Show(const api::HorovodJob& job, bool has_pods, const std::string& now,
                            api::Status* status) const {
  const std::lock_guard lock(mu_);
  const auto problem = problems_.find(job.uid);
  const auto at = std::find_if(status->conditions.begin(), status->conditions.end(),
                               [](const api::Condition& c) { return c.type == "Created"; });
  if (at == status->conditions.end()) return;
  const bool good = problem == problems_.end();
  if (good && at->status) return;
  if (at->status != good) at->last_transition_time = now;
  at->status = good;
  at->reason = good ? "Accepted" : problem->second.reason;
  at->message = good ? "the operator has taken up the job" : problem->second.message;
  at->observed_generation = job.generation;
  if (!good && !has_pods && at->reason == kInvalidTemplate) status->state = "Invalid";
}

}  // namespace ringmaster::controllers
