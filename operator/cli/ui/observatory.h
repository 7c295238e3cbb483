// Looks at all jobs of a place again and again, and keeps what it has seen for the page.
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
#include "operator/cli/connection.h"
#include "operator/cli/ui/job_history.h"

namespace ringmaster::ui {

class Observatory {
 public:
  using Json = nlohmann::json;

  struct Options {
    std::chrono::milliseconds interval{1000};  // between two looks
    std::size_t jobs = 200;                    // of more only the first are looked at
    std::size_t gone = 20;                     // deleted jobs that are still shown
    JobHistory::Limits limits = {};
  };

  // `to.ns` empty: the jobs of all namespaces.
  Observatory(cli::Connection to, const Options& options);
  ~Observatory();

  // {"since": unix ms of the first look, "error": why the newest look failed, or "",
  //  "jobs": as JobHistory::Now() without what is long}
  Json Jobs() const;
  // {"job": JobHistory::Now(), "samples": [..]}. `key`: "namespace/name". Null: there is none.
  Json Job(const std::string& key) const;
  // Waits for a look newer than `seen`, which it sets. {"error", "job", "sample"}; null: none came
  // in time, or there is no such job.
  Json Newer(const std::string& key, std::uint64_t* seen, std::chrono::milliseconds wait) const;
  // The last lines of what a pod's workers have printed.
  std::string Log(const std::string& ns, const std::string& pod, int lines) const;

 private:
  struct Watched {
    std::string uid;
    JobHistory history;
    std::uint64_t gone_since = 0;  // the look that missed it; 0: it is there
  };

  void Run(std::stop_token stop);
  void LookAtAll();
  void Keep(cli::Inspection look);
  // Those of `there` are; the others have been deleted.
  void MarkGone(const std::set<std::string>& there);
  static Json NowOf(const Watched& watched);

  const cli::Connection to_;
  const Options options_;
  const std::int64_t since_unix_ms_;

  mutable sync::Mutex mu_;
  mutable sync::StoppableCondVar looked_;
  std::uint64_t looks_ GUARDED_BY(mu_) = 0;
  std::string error_ GUARDED_BY(mu_);
  std::map<std::string, Watched> jobs_ GUARDED_BY(mu_);  // by namespace/name

  std::jthread thread_;  // last: uses the others
};

}  // namespace ringmaster::ui
