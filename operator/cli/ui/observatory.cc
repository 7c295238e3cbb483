#include "operator/cli/ui/observatory.h"

#include <algorithm>
#include <utility>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/cli/inspection.h"

namespace ringmaster::ui {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

std::int64_t NowUnixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string KeyOf(const Json& job) {
  return fields::TextAt(job, "/metadata/namespace") + "/" + fields::TextAt(job, "/metadata/name");
}

}  // namespace

Observatory::Observatory(cli::Connection to, const Options& options)
    : to_(std::move(to)),
      options_(options),
      since_unix_ms_(NowUnixMs()),
      thread_([this](std::stop_token stop) { Run(std::move(stop)); }) {}

Observatory::~Observatory() {
  thread_.request_stop();
  thread_.join();
}

void Observatory::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const auto next = Clock::now() + options_.interval;
    LookAtAll();
    sync::MutexLock lock(&mu_);
    ++looks_;
    looked_.NotifyAll();
    while (looked_.WaitUntil(&mu_, stop, next)) continue;
  }
}

void Observatory::LookAtAll() {
  auto list = to_.api->ListAll(kube::HorovodJobs(), to_.ns, {});
  {
    sync::MutexLock lock(&mu_);
    error_ = list ? "" : list.error().message;
  }
  if (!list) return;
  std::set<std::string> there;
  for (const Json& job : list->items) there.insert(KeyOf(job));
  MarkGone(there);
  std::size_t looked_at = 0;
  for (Json& job : list->items) {
    if (looked_at++ == options_.jobs) break;
    if (auto look = cli::Inspect(to_, std::move(job))) Keep(std::move(*look));
  }
}

void Observatory::MarkGone(const std::set<std::string>& there) {
  sync::MutexLock lock(&mu_);
  std::multimap<std::uint64_t, std::string> gone;  // by the look that missed them
  for (auto& [key, watched] : jobs_) {
    if (there.count(key) > 0) continue;
    if (watched.gone_since == 0) watched.gone_since = looks_ + 1;
    gone.emplace(watched.gone_since, key);
  }
  for (; gone.size() > options_.gone; gone.erase(gone.begin())) jobs_.erase(gone.begin()->second);
}

void Observatory::Keep(cli::Inspection look) {
  const std::string key = KeyOf(look.job);
  const std::string uid = fields::TextAt(look.job, "/metadata/uid");
  sync::MutexLock lock(&mu_);
  auto found = jobs_.find(key);
  if (found != jobs_.end() && found->second.uid != uid) {  // another job of the same name
    jobs_.erase(found);
    found = jobs_.end();
  }
  if (found == jobs_.end())
    found = jobs_.emplace(key, Watched{uid, JobHistory(options_.limits)}).first;
  found->second.gone_since = 0;
  found->second.history.Add(std::move(look), NowUnixMs());
}

Json Observatory::Jobs() const {
  sync::MutexLock lock(&mu_);
  Json jobs = Json::array();
  for (const auto& [key, watched] : jobs_) {
    Json job = NowOf(watched);
    for (const char* is_long : {"ranks", "changes", "pods"}) job.erase(is_long);
    job["workers"] = watched.history.newest()["workers"];
    job["step"] = watched.history.newest()["step"];
    jobs.push_back(std::move(job));
  }
  return {{"since", since_unix_ms_}, {"error", error_}, {"jobs", std::move(jobs)}};
}

Json Observatory::NowOf(const Watched& watched) {
  Json now = watched.history.Now();
  if (watched.gone_since != 0) now["state"] = "Deleted";
  return now;
}

Json Observatory::Job(const std::string& key) const {
  sync::MutexLock lock(&mu_);
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return nullptr;
  return {{"job", NowOf(found->second)}, {"samples", found->second.history.Samples()}};
}

Json Observatory::Newer(const std::string& key, std::uint64_t* seen,
                        std::chrono::milliseconds wait) const {
  const auto deadline = Clock::now() + wait;
  sync::MutexLock lock(&mu_);
  while (looks_ <= *seen) {
    if (!looked_.WaitUntil(&mu_, {}, deadline)) break;
  }
  if (looks_ <= *seen) return nullptr;
  *seen = looks_;
  const auto found = jobs_.find(key);
  if (found == jobs_.end()) return nullptr;
  return {
      {"error", error_}, {"job", NowOf(found->second)}, {"sample", found->second.history.newest()}};
}

std::string Observatory::Log(const std::string& ns, const std::string& pod, int lines) const {
  constexpr std::size_t kMostBytes = 1 << 20;
  std::string text;
  const auto read = to_.api->PodLogWith(
      ns, pod, {.container = api::kWorkerContainer, .tail = lines},
      [&](std::string_view more) {
        text.append(more.substr(0, kMostBytes - std::min(kMostBytes, text.size())));
        return text.size() < kMostBytes;
      },
      {});
  return read ? text : "the log can't be read: " + read.error().message + "\n";
}

}  // namespace ringmaster::ui
