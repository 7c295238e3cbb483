#include "operator/page/observatory.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/fields/fields.h"
#include "common/sync/parallel.h"
#include "operator/api/object_key.h"
#include "operator/page/waiting_line.h"

namespace ringmaster::page {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr char kDeleted[] = "Deleted";  // a state that only the page has
constexpr std::size_t kLooksAtOnce = 8;
constexpr std::chrono::milliseconds kListPatience{2000};

std::int64_t NowUnixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Observatory::Observatory(std::shared_ptr<Source> source, const Options& options)
    : source_(std::move(source)),
      options_(options),
      since_unix_ms_(NowUnixMs()),
      thread_([this](std::stop_token stop) { Run(std::move(stop)); }) {}

Observatory::~Observatory() {
  RequestStop();
  thread_.join();
}

void Observatory::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const auto next = Clock::now() + options_.interval;
    if (!Idle()) LookAtAll(stop);
    sync::MutexLock lock(&mu_);
    while (!woken_ && looked_.WaitUntil(&mu_, stop, next)) continue;
    woken_ = false;
  }
}

bool Observatory::Idle() const {
  sync::MutexLock lock(&mu_);
  return NobodyAsked();
}

bool Observatory::NobodyAsked() const {
  if (options_.asked_within.count() == 0) return false;
  return !last_asked_ || *last_asked_ + options_.asked_within < Clock::now();
}

void Observatory::SomebodyAsks() {
  if (NobodyAsked()) {
    old_lists_ = lists_;
    woken_ = true;
    looked_.NotifyAll();
  }
  last_asked_ = Clock::now();
}

void Observatory::LookAtAll(const std::stop_token& stop) {
  auto jobs = List();
  if (!jobs) return AnnounceOthers({});
  std::map<std::string, std::string> there;
  for (const Json& job : *jobs) there[api::KeyOf(job)] = fields::TextAt(job, "/metadata/uid");
  MarkGone(there);
  std::vector<Json> chosen = Chosen(std::move(*jobs));
  std::set<std::string> keys;
  for (const Json& job : chosen) keys.insert(api::KeyOf(job));
  // A job whose pods don't answer takes seconds, in which the others are looked at.
  std::atomic<std::size_t> next = 0;
  sync::InParallel(std::min(kLooksAtOnce, chosen.size()), [&](std::size_t) {
    for (std::size_t i = next++; i < chosen.size() && !stop.stop_requested(); i = next++)
      LookAt(std::move(chosen[i]));
  });
  AnnounceOthers(keys);
}

std::optional<std::vector<Json>> Observatory::List() {
  auto jobs = source_->Jobs();
  Json line = jobs ? LineOf(*jobs) : Json();
  sync::MutexLock lock(&mu_);
  ++lists_;
  looked_.NotifyAll();
  error_ = jobs ? "" : jobs.error();
  if (!jobs) return std::nullopt;
  listed_.clear();
  for (const Json& job : *jobs) listed_[api::KeyOf(job)] = Summary(job);
  line_ = std::move(line);
  return std::move(*jobs);
}

void Observatory::LookAt(Json job) {
  const std::string key = api::KeyOf(job);
  auto look = source_->Inspect(std::move(job));
  if (!look) return Announce(key, look.error());
  const Json past = WantsPast(*look) ? source_->History(*look) : Json();
  Keep(std::move(*look), past);
  Announce(key, "");
}

void Observatory::Announce(const std::string& key, const std::string& error) {
  sync::MutexLock lock(&mu_);
  if (error.empty())
    failed_.erase(key);
  else
    failed_[key] = error;
  news_[key] = ++looks_;
  looked_.NotifyAll();
}

void Observatory::AnnounceOthers(const std::set<std::string>& looked_at) {
  const auto was_not = [&](const auto& of_key) { return looked_at.count(of_key.first) == 0; };
  sync::MutexLock lock(&mu_);
  std::erase_if(failed_, was_not);
  std::erase_if(news_, was_not);
  news_of_others_ = ++looks_;
  looked_.NotifyAll();
}

Json Observatory::LineOf(const std::vector<Json>& jobs) {
  const auto priority_of = [this](const Json& job) { return source_->PriorityOf(job); };
  return WaitingLine(jobs, priority_of, std::chrono::system_clock::now(), options_.line);
}

std::vector<Json> Observatory::Chosen(std::vector<Json> jobs) {
  sync::MutexLock lock(&mu_);
  if (options_.asked_within.count() == 0) return FirstOf(std::move(jobs));
  const auto oldest = Clock::now() - options_.asked_within;
  std::erase_if(asked_, [&](const auto& asked) { return asked.second < oldest; });
  std::erase_if(jobs_, [&](const auto& job) REQUIRES(mu_) { return asked_.count(job.first) == 0; });
  std::erase_if(jobs,
                [&](const Json& job) REQUIRES(mu_) { return asked_.count(api::KeyOf(job)) == 0; });
  return jobs;
}

bool Observatory::IsSettled(const Json& job) const {
  const std::string key = api::KeyOf(job);
  const auto found = jobs_.find(key);
  const Json state = Summary(job)["state"];
  if (state != "Succeeded" && state != "Failed") return false;
  if (asked_.count(key) > 0 || found == jobs_.end()) return false;
  const auto version = [](const Json& of) {
    return fields::TextAt(of, "/metadata/resourceVersion");
  };
  return version(found->second.history.job()) == version(job);
}

std::vector<Json> Observatory::FirstOf(std::vector<Json> jobs) {
  std::erase_if(asked_,
                [&](const auto& asked) REQUIRES(mu_) { return listed_.count(asked.first) == 0; });
  std::stable_partition(jobs.begin(), jobs.end(), [&](const Json& job) REQUIRES(mu_) {
    return asked_.count(api::KeyOf(job)) > 0;
  });
  for (std::size_t i = options_.jobs; i < jobs.size(); ++i) jobs_.erase(api::KeyOf(jobs[i]));
  if (jobs.size() > options_.jobs) jobs.resize(options_.jobs);
  std::erase_if(jobs, [&](const Json& job) REQUIRES(mu_) { return IsSettled(job); });
  return jobs;
}

// If there are too many jobs, the one whose last request is oldest is dropped.
void Observatory::AskedFor(const std::string& key) {
  SomebodyAsks();
  if (listed_.count(key) == 0) return;
  asked_[key] = Clock::now();
  if (asked_.size() <= options_.jobs) return;
  asked_.erase(std::min_element(asked_.begin(), asked_.end(),
                                [](const auto& a, const auto& b) { return a.second < b.second; }));
}

void Observatory::MarkGone(const std::map<std::string, std::string>& there) {
  sync::MutexLock lock(&mu_);
  std::erase_if(jobs_, [&](const auto& job) {
    const auto same_name = there.find(job.first);
    return same_name != there.end() && same_name->second != job.second.uid;
  });
  std::multimap<std::uint64_t, std::string> gone;  // by the observation that missed them
  for (auto& [key, watched] : jobs_) {
    if (there.count(key) > 0) continue;
    if (watched.gone_since == 0) watched.gone_since = looks_ + 1;
    gone.emplace(watched.gone_since, key);
  }
  for (; gone.size() > options_.gone; gone.erase(gone.begin())) jobs_.erase(gone.begin()->second);
}

// Once, when sidecars first answer: what was before somebody looked.
bool Observatory::WantsPast(const inspection::Inspection& look) const {
  if (look.answers.empty()) return false;
  sync::MutexLock lock(&mu_);
  const auto found = jobs_.find(api::KeyOf(look.job));
  return found == jobs_.end() || !found->second.has_past ||
         found->second.uid != fields::TextAt(look.job, "/metadata/uid");
}

void Observatory::Keep(inspection::Inspection look, const Json& past) {
  const std::string key = api::KeyOf(look.job);
  const std::string uid = fields::TextAt(look.job, "/metadata/uid");
  sync::MutexLock lock(&mu_);
  auto found = jobs_.find(key);
  if (found != jobs_.end() && found->second.uid != uid) {  // another job with the same name
    jobs_.erase(found);
    found = jobs_.end();
  }
  if (found == jobs_.end())
    found = jobs_.emplace(key, Watched{uid, JobHistory(options_.limits)}).first;
  Watched& watched = found->second;
  watched.gone_since = 0;
  if (!look.answers.empty() && !std::exchange(watched.has_past, true))
    watched.history.SetPast(past);
  watched.history.Add(std::move(look), NowUnixMs());
}

bool Observatory::ListIsOld() {
  sync::MutexLock lock(&mu_);
  SomebodyAsks();
  return IsOld();
}

Json Observatory::Jobs() {
  sync::MutexLock lock(&mu_);
  SomebodyAsks();
  const auto deadline = Clock::now() + kListPatience;
  while (IsOld() && looked_.WaitUntil(&mu_, {}, deadline)) continue;
  Json jobs = Json::array();
  for (const auto& [key, job] : listed_) jobs.push_back(job);
  for (const auto& [key, watched] : jobs_) {
    if (watched.gone_since == 0 || listed_.count(key) > 0) continue;
    jobs.push_back(Summary(watched.history.job()));
    jobs.back()["state"] = kDeleted;
  }
  return {{"since", since_unix_ms_}, {"error", error_}, {"jobs", std::move(jobs)}, {"line", line_}};
}

Json Observatory::NowOf(const Watched& watched) {
  Json now = watched.history.Now();
  if (watched.gone_since != 0) now["state"] = kDeleted;
  return now;
}

Json Observatory::Job(const std::string& key) {
  sync::MutexLock lock(&mu_);
  AskedFor(key);
  if (const auto found = jobs_.find(key); found != jobs_.end())
    return {{"job", NowOf(found->second)},
            {"past", found->second.history.past()},
            {"samples", found->second.history.Samples()}};
  const auto listed = listed_.find(key);
  if (listed == listed_.end()) return nullptr;
  return {{"job", listed->second}, {"past", 0}, {"samples", Json::array()}};
}

Json Observatory::Metadata(const std::string& key) {
  sync::MutexLock lock(&mu_);
  AskedFor(key);
  const auto listed = listed_.find(key);
  if (listed == listed_.end()) return nullptr;
  Json metadata = Json::object();
  for (const char* field : {"namespace", "name", "uid"}) metadata[field] = listed->second[field];
  return {{"metadata", std::move(metadata)}};
}

Json Observatory::Newer(const std::string& key, std::uint64_t* seen,
                        std::chrono::milliseconds wait) {
  const auto deadline = Clock::now() + wait;
  sync::MutexLock lock(&mu_);
  AskedFor(key);
  const auto newest = [&]() REQUIRES(mu_) {
    const auto news = news_.find(key);
    return news == news_.end() ? news_of_others_ : news->second;
  };
  while (newest() <= *seen) {
    if (!looked_.WaitUntil(&mu_, {}, deadline)) break;
  }
  if (newest() <= *seen) return nullptr;
  *seen = newest();
  const auto failed = failed_.find(key);
  const std::string& error = error_.empty() && failed != failed_.end() ? failed->second : error_;
  if (const auto found = jobs_.find(key); found != jobs_.end())
    return {{"error", error},
            {"job", NowOf(found->second)},
            {"sample", found->second.history.newest()}};
  const auto listed = listed_.find(key);
  if (listed != listed_.end()) {
    return error.empty() ? Json() : Json{{"error", error}, {"job", listed->second}};
  }
  return {{"error", error.empty() ? "no job '" + key + "' is there" : error}};
}

}  // namespace ringmaster::page
