// Observes the jobs of a place periodically, and keeps the results for the page.
//
// Thread rule: callable from any thread; a thread of its own observes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/page/job_history.h"
#include "operator/page/source.h"

namespace ringmaster::page {

class Observatory {
 public:
  using Json = nlohmann::json;

  struct Options {
    std::chrono::milliseconds interval{1000};  // between two observations
    // If there are more, those are observed that were requested last, and then the first.
    std::size_t jobs = 200;
    // If not 0, only jobs that were requested within this time are observed, the latest ones if
    // there are too many, and none without requests.
    std::chrono::seconds asked_within{0};
    std::size_t gone = 20;   // deleted jobs that are still shown
    std::size_t line = 200;  // waiting jobs, the first ones
    JobHistory::Limits limits = {};
  };

  Observatory(std::shared_ptr<Source> source, const Options& options);
  ~Observatory();
  // Ends after the observation in progress. Call it from any thread.
  void RequestStop() { thread_.request_stop(); }

  // {"since": unix ms of the first observation, "error": why the newest one failed, or "",
  //  "jobs": as Summary(), "line": WaitingLine()}. If the list is old it waits for a new one, for a
  // few seconds at most.
  Json Jobs();
  // There was no list since somebody asks again after a time without requests.
  bool ListIsOld();
  // {"job": JobHistory::Now(), "samples": [..], "past": how many of these are from a sidecar's
  // history before the first observation}. `key` is "namespace/name". Null if there is no such job.
  // A job that was not observed yet has no samples, and is observed from now on.
  Json Job(const std::string& key);
  // Waits for an observation of the job newer than `seen`, and sets that. {"error", "job",
  // "sample"}, without the sample if the job could never be observed, and without the job if there
  // is none; null if nothing new came in time.
  Json Newer(const std::string& key, std::uint64_t* seen, std::chrono::milliseconds wait);
  // The job's namespace, name and uid, in an object's places; null if there is no such job.
  Json Metadata(const std::string& key);
  Source* source() const { return source_.get(); }

 private:
  struct Watched {
    std::string uid;
    JobHistory history;
    std::uint64_t gone_since = 0;  // the observation that missed it; 0: it exists
    bool has_past = false;         // its past was requested
  };

  void Run(std::stop_token stop);
  void LookAtAll(const std::stop_token& stop);
  // Lists them; nullopt: they could not be listed.
  std::optional<std::vector<Json>> List();
  void LookAt(Json job);
  // What is kept of the job, or why it can't be observed, is new.
  void Announce(const std::string& key, const std::string& error);
  // An observation of all jobs is over: what it has not looked at is new as well.
  void AnnounceOthers(const std::set<std::string>& looked_at);
  Json LineOf(const std::vector<Json>& jobs);
  // The jobs that this observation covers.
  std::vector<Json> Chosen(std::vector<Json> jobs);
  bool WantsPast(const inspection::Inspection& look) const;
  void Keep(inspection::Inspection look, const Json& past);
  // `there` has the uids of all existing jobs by their keys; others have been deleted. What is kept
  // of a job that was deleted and made anew under its name would be taken for the new one's.
  void MarkGone(const std::map<std::string, std::string>& there);
  // Without requests all jobs have a place, as far as there are not too many.
  std::vector<Json> FirstOf(std::vector<Json> jobs) REQUIRES(mu_);
  void AskedFor(const std::string& key) REQUIRES(mu_);
  void SomebodyAsks() REQUIRES(mu_);
  // A job that has ended changes no more, so one look is enough.
  bool IsSettled(const Json& job) const REQUIRES(mu_);
  bool Idle() const;
  bool NobodyAsked() const REQUIRES(mu_);
  bool IsOld() const REQUIRES(mu_) {
    return options_.asked_within.count() > 0 && lists_ <= old_lists_;
  }
  static Json NowOf(const Watched& watched);

  const std::shared_ptr<Source> source_;
  const Options options_;
  const std::int64_t since_unix_ms_;

  mutable sync::Mutex mu_;
  mutable sync::StoppableCondVar looked_;
  std::uint64_t looks_ GUARDED_BY(mu_) = 0;  // at single jobs, and at all
  std::uint64_t lists_ GUARDED_BY(mu_) = 0;
  std::uint64_t old_lists_ GUARDED_BY(mu_) = 0;  // of these, before somebody asked again
  // The newest look at each job of the last observation of all, and that at what was not in it.
  std::map<std::string, std::uint64_t> news_ GUARDED_BY(mu_);
  std::uint64_t news_of_others_ GUARDED_BY(mu_) = 0;
  std::optional<std::chrono::steady_clock::time_point> last_asked_ GUARDED_BY(mu_);
  bool woken_ GUARDED_BY(mu_) = false;  // the next observation is due now
  std::string error_ GUARDED_BY(mu_);
  // By namespace/name.
  std::map<std::string, Json> listed_ GUARDED_BY(mu_);  // all existing jobs, in short
  Json line_ GUARDED_BY(mu_) = Json::array();           // those of them that wait
  std::map<std::string, Watched> jobs_ GUARDED_BY(mu_);
  std::map<std::string, std::string> failed_ GUARDED_BY(mu_);  // why the newest look at it failed
  std::map<std::string, std::chrono::steady_clock::time_point> asked_ GUARDED_BY(mu_);

  std::jthread thread_;  // last member: its thread uses the others
};

}  // namespace ringmaster::page
