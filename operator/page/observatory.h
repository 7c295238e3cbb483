// Looks at the jobs of a place again and again, and keeps what it has seen for the page.
//
// Thread rule: any thread asks; a thread of its own looks.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "common/sync/mutex.h"
#include "operator/page/job_history.h"
#include "operator/page/source.h"

namespace ringmaster::page {

class Observatory {
 public:
  using Json = nlohmann::json;

  struct Options {
    std::chrono::milliseconds interval{1000};  // between two looks
    std::size_t jobs = 200;                    // of more only the first are looked at
    // Not 0: only those are looked at that somebody has asked for within this time, of more the
    // latest; and nothing is, while nobody asks.
    std::chrono::seconds asked_within{0};
    std::size_t gone = 20;   // deleted jobs that are still shown
    std::size_t line = 200;  // jobs that wait, the first
    JobHistory::Limits limits = {};
  };

  Observatory(std::shared_ptr<Source> source, const Options& options);
  ~Observatory();
  // No job is looked at after the one at hand. From any thread.
  void RequestStop() { thread_.request_stop(); }

  // {"since": unix ms of the first look, "error": why the newest look failed, or "",
  //  "jobs": as Summary(), "line": WaitingLine()}
  Json Jobs();
  // {"job": JobHistory::Now(), "samples": [..], "past": how many of them are from before the first
  // look, as a sidecar has kept them}. `key`: "namespace/name". Null: there is none. A
  // job that has not been looked at yet has no samples and is looked at from now on.
  Json Job(const std::string& key);
  // Waits for a look newer than `seen`, which it sets. {"error", "job", "sample"}; null: none came
  // in time, or there is no such job.
  Json Newer(const std::string& key, std::uint64_t* seen, std::chrono::milliseconds wait);
  // The job's namespace, name and uid, where an object has them; null: there is none.
  Json Metadata(const std::string& key);
  Source* source() const { return source_.get(); }

 private:
  struct Watched {
    std::string uid;
    JobHistory history;
    std::uint64_t gone_since = 0;  // the look that missed it; 0: it is there
    bool has_past = false;         // it was asked for what was before
  };

  void Run(std::stop_token stop);
  void LookAtAll(const std::stop_token& stop);
  Json LineOf(const std::vector<Json>& jobs);
  // Which of them this look is for.
  std::vector<Json> Chosen(std::vector<Json> jobs);
  bool WantsPast(const inspection::Inspection& look) const;
  void Keep(inspection::Inspection look, const Json& past);
  // Those of `there` are; the others have been deleted.
  void MarkGone(const std::set<std::string>& there);
  void AskedFor(const std::string& key) REQUIRES(mu_);
  void SomebodyAsks() REQUIRES(mu_);
  bool Idle() const;
  static Json NowOf(const Watched& watched);

  const std::shared_ptr<Source> source_;
  const Options options_;
  const std::int64_t since_unix_ms_;

  mutable sync::Mutex mu_;
  mutable sync::StoppableCondVar looked_;
  std::uint64_t looks_ GUARDED_BY(mu_) = 0;
  std::chrono::steady_clock::time_point last_asked_ GUARDED_BY(mu_);
  bool woken_ GUARDED_BY(mu_) = false;  // the next look is now
  std::string error_ GUARDED_BY(mu_);
  // By namespace/name.
  std::map<std::string, Json> listed_ GUARDED_BY(mu_);  // all that there are, in short
  Json line_ GUARDED_BY(mu_) = Json::array();           // those of them that wait
  std::map<std::string, Watched> jobs_ GUARDED_BY(mu_);
  std::map<std::string, std::chrono::steady_clock::time_point> asked_ GUARDED_BY(mu_);

  std::jthread thread_;  // last: uses the others
};

}  // namespace ringmaster::page
