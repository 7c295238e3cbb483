// The progress of one job, merged from its sidecars' answers: each sidecar knows its own part, may
// answer late or not at all, and disappears with its pod. Pure: no socket, no clock.
//
// Thread rule: none; one thread owns it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/inspection/sidecar_status.h"

namespace ringmaster::cli {

using TimePoint = std::chrono::steady_clock::time_point;

// One view of the job, with the rebuild that led to it (the first view has none).
struct ViewRecord {
  job::Rebuild rebuild;
  int old_size = 0;  // ranks of the view before; 0 for the first
  std::vector<inspection::RankStatus>
      lost;  // workers that the view before had and this one has not
  std::vector<inspection::RankStatus> gained;  // the other way round
  TimePoint first_seen;
  bool told = false;
};

class JobProgress {
 public:
  void Observe(const inspection::SidecarStatus& status, TimePoint now);
  // A pod that is no more: its state says nothing about the job.
  void Forget(const std::string& pod);
  // Records the newest exit of a process of this pod; 128+n: killed by signal n.
  void NoteExit(const std::string& pod, int code);
  std::string HowEnded(const std::string& pod) const;

  // Returns the views about which nothing more is expected (steps continue, nothing came for a
  // second, or there is a newer view), each of them once, in order. `last`: the run is over, so all
  // of them.
  std::vector<ViewRecord> TakeSettled(TimePoint now, bool last = false);

  uint64_t step() const { return step_; }
  uint64_t epoch() const { return epoch_; }
  int world_size() const { return world_size_; }
  double samples_per_second() const { return samples_per_second_; }
  const std::map<std::string, double>& values() const { return values_; }
  int64_t steps_lost() const;
  // What the coordinator reports about the job ("Training", "Rebuilding", "Held", ...); empty if
  // nothing was reported.
  std::string state() const;
  const std::map<uint64_t, ViewRecord>& views() const { return views_; }
  // The worker that has rank 0 in the newest view that was seen.
  std::optional<inspection::RankStatus> RankZero() const {
    return ranks_.empty() ? std::nullopt : std::optional(ranks_.rbegin()->second.front());
  }
  // Whether a worker in this one's place has a rank in that view.
  bool HasRank(const inspection::RankStatus& place) const;
  const std::map<std::string, inspection::SidecarStatus>& sidecars() const { return sidecars_; }

 private:
  void ObserveStep(const inspection::SidecarStatus& status);
  void ObserveView(const inspection::SidecarStatus& status, TimePoint now);
  void ObserveRebuild(const job::Rebuild& rebuild, TimePoint now);
  void InferBootstrap(const job::Rebuild& change, TimePoint now);
  void CompareWithParent(ViewRecord* record);
  bool Settled(const ViewRecord& record, TimePoint now) const;

  std::map<std::string, inspection::SidecarStatus> sidecars_;  // newest answer by pod
  std::map<uint64_t, ViewRecord> views_;
  std::map<uint64_t, std::vector<inspection::RankStatus>> ranks_;  // by epoch
  std::map<std::string, std::string> ends_;
  std::map<std::string, double> values_;
  uint64_t lineage_ = 0;
  uint64_t step_ = 0;  // in that lineage, which may have begun again from a checkpoint
  uint64_t epoch_ = 0;
  int world_size_ = 0;
  double samples_per_second_ = 0;
};

}  // namespace ringmaster::cli
