// A queue of calls by many jobs for a few threads. The jobs take turns, with one running call per
// job, and each job has a limited number of waiting calls, so a job with too many calls delays only
// itself.
//
// Thread rule: none; its owner's lock guards it.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace ringmaster::app {

template <typename Call>
class FairQueue {
 public:
  FairQueue(std::size_t most_of_a_job, std::size_t most)
      : most_of_a_job_(most_of_a_job), most_(most) {}

  // Returns false if no place is left, for this job or for all.
  [[nodiscard]] bool Add(const std::string& job, Call call) {
    if (size_ >= most_) return false;
    auto& calls = waiting_[job];
    if (calls.size() >= most_of_a_job_) return false;
    calls.push_back(std::move(call));
    ++size_;
    if (calls.size() == 1 && running_.count(job) == 0) turns_.push_back(job);
    return true;
  }

  // The next call of a job without a running call. Done(job) has to be called after it.
  std::optional<std::pair<std::string, Call>> Take() {
    if (turns_.empty()) return std::nullopt;
    std::string job = std::move(turns_.front());
    turns_.pop_front();
    const auto calls = waiting_.find(job);
    Call call = std::move(calls->second.front());
    calls->second.pop_front();
    if (calls->second.empty()) waiting_.erase(calls);
    --size_;
    running_.insert(job);
    return std::pair{std::move(job), std::move(call)};
  }

  void Done(const std::string& job) {
    running_.erase(job);
    if (waiting_.count(job) != 0) turns_.push_back(job);
  }

  std::size_t size() const { return size_; }

 private:
  const std::size_t most_of_a_job_, most_;
  std::map<std::string, std::deque<Call>> waiting_;
  std::deque<std::string> turns_;  // jobs with waiting calls and no running one
  std::set<std::string> running_;
  std::size_t size_ = 0;
};

}  // namespace ringmaster::app
