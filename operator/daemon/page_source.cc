#include "operator/daemon/page_source.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "operator/api/horovod_job.h"
#include "operator/api/labels.h"
#include "operator/controllers/pod_record.h"
#include "operator/inspection/inspection.h"
#include "operator/inspection/sidecar_token.h"

namespace ringmaster::daemon {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostTokens = 64;
// The pause before a token that may be wrong is read again. Without it, 16 jobs without a token
// would use up the page's calls.
constexpr std::chrono::seconds kAskedAgain{5};

// Keeps only what the page shows of a job, because templates may be long and jobs many.
Json Slim(const Json& job) {
  const std::string priority = fields::TextAt(job, "/spec/worker/template/spec/priorityClassName");
  Json policy = fields::ObjectAt(job, "/spec/runPolicy/schedulingPolicy");
  if (!priority.empty()) policy["priorityClass"] = priority;
  Json slim = {{"metadata", {{"labels", Json::object()}}},
               {"spec",
                {{"elasticPolicy", fields::ObjectAt(job, "/spec/elasticPolicy")},
                 {"runPolicy", {{"schedulingPolicy", std::move(policy)}}},
                 {"slotsPerWorker", fields::IntegerAt(job, "/spec/slotsPerWorker", 1)},
                 {"worker", {{"replicas", fields::At(job, "/spec/worker/replicas")}}}}},
               {"status", fields::At(job, "/status")}};
  for (const char* field : {"namespace", "name", "uid", "creationTimestamp"})
    slim["metadata"][field] = fields::Text(fields::At(job, "/metadata"), field);
  slim["metadata"]["labels"][api::kQueueLabel] =
      fields::Text(fields::At(job, "/metadata/labels"), api::kQueueLabel);
  return slim;
}

}  // namespace

PageSource::Answer<std::vector<Json>> PageSource::Jobs() {
  app::OperatorSample sample = sample_();
  std::vector<Json> jobs;
  for (const auto& job : sample.jobs) jobs.push_back(Slim(*job));
  // Without trees: there may be many pods.
  for (const auto& pod : sample.pods) priorities_.Remember(*pod.WithoutTree());
  sync::MutexLock lock(&mu_);
  pods_ = std::move(sample.pods);
  return jobs;
}

PageSource::Answer<inspection::Inspection> PageSource::Inspect(Json job) {
  std::vector<Json> pods = PodsOf(job);
  auto answers = inspection::AskSidecars(pods, TokenOf(job));
  return inspection::Inspection{std::move(job), std::move(pods), std::move(answers), {}};
}

Json PageSource::History(const inspection::Inspection& look) {
  return inspection::HistoryFrom(look, TokenOf(look.job));
}

inspection::GatheredTimelines PageSource::Timeline(const Json& job,
                                                   const inspection::TimelineQuery& query) {
  return inspection::GatherTimelinesStraight(PodsOf(job), TokenOf(job), query);
}

// These pods are sent the job's token, so a label is not enough: anyone could put it on their own
// pod.
std::vector<Json> PageSource::PodsOf(const Json& job) const {
  const std::string ns = fields::TextAt(job, "/metadata/namespace"),
                    uid = fields::TextAt(job, "/metadata/uid");
  std::vector<runtime::ObjectPtr> owned;
  {
    sync::MutexLock lock(&mu_);
    std::copy_if(pods_.begin(), pods_.end(), std::back_inserter(owned), [&](const auto& pod) {
      return controllers::IsOwnedBy(controllers::RecordOf(pod), uid);
    });
  }
  std::vector<Json> pods;
  for (const auto& pod : owned) {
    if (fields::TextAt(*pod, "/metadata/namespace") == ns) pods.push_back(*pod);
  }
  return pods;
}

std::string PageSource::TokenOf(const Json& job) {
  const std::string uid = fields::TextAt(job, "/metadata/uid");
  {
    sync::MutexLock lock(&mu_);
    const auto known = tokens_.find(uid);
    if (known != tokens_.end() && now_() < known->second.until) return known->second.token;
  }
  KnownToken read = ReadToken(job);
  sync::MutexLock lock(&mu_);
  if (tokens_.size() >= kMostTokens) tokens_.clear();
  return (tokens_[uid] = std::move(read)).token;
}

// The Secret is found by its name, so it may belong to a deleted job, or not exist yet.
PageSource::KnownToken PageSource::ReadToken(const Json& job) const {
  const std::string name = fields::TextAt(job, "/metadata/name");
  const auto read =
      inspection::SidecarTokenOfJob(api_.get(), fields::TextAt(job, "/metadata/namespace"), name);
  if (!read) {
    logging::Warn("page has no token for the sidecars job={} error={}", name,
                  logging::Value(read.error().message));
    return {"", now_() + kAskedAgain};
  }
  const bool is_its_own =
      !read->token.empty() && read->job_uid == fields::TextAt(job, "/metadata/uid");
  return {read->token, is_its_own ? Clock::time_point::max() : now_() + kAskedAgain};
}

PageSource::Answer<void> PageSource::Log(const std::string& ns, const std::string& pod, int lines,
                                         const std::function<bool(std::string_view)>& on_text,
                                         std::stop_token stop) {
  const auto read = api_->PodLogWith(ns, pod, {.container = api::kWorkerContainer, .tail = lines},
                                     on_text, std::move(stop));
  if (!read) return tl::unexpected(read.error().message);
  return {};
}

}  // namespace ringmaster::daemon
