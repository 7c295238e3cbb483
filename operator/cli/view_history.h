// All views of one job that its sidecars have told of: who was in each, and the rebuild that led to
// it, merged from what several sidecars know of it. Pure: no socket, no clock.
//
// Thread rule: none; one thread owns it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/job/rebuild.h"
#include "operator/cli/time_point.h"
#include "operator/inspection/sidecar_status.h"

namespace ringmaster::cli {

// One view of the job, with the rebuild that led to it (the first view has none).
struct ViewRecord {
  job::Rebuild rebuild;
  int old_size = 0;  // ranks of the view before; 0 for the first
  std::vector<inspection::RankHolder>
      lost;  // workers that the view before had and this one has not
  std::vector<inspection::RankHolder> gained;  // the other way round
  TimePoint first_seen;
  bool told = false;
};

class ViewHistory {
 public:
  void Observe(const inspection::SidecarStatus& status, TimePoint now);

  // Returns the views about which nothing more is expected (steps continue, there is a newer view,
  // or three seconds have passed), each of them once, in order. `last`: the run is over, so all
  // of them.
  std::vector<ViewRecord> TakeSettled(TimePoint now, bool last);

  // The newest view; 0 if there was none.
  std::uint64_t epoch() const { return epoch_; }
  int world_size() const { return world_size_; }
  // By epoch, the newest thousand: a job may run for weeks on machines that come and go.
  const std::map<std::uint64_t, ViewRecord>& all() const { return views_; }
  std::size_t forgotten() const { return forgotten_; }  // views before those
  std::int64_t steps_lost() const;
  // The worker that has rank 0 in the newest view whose ranks are known.
  std::optional<inspection::RankHolder> RankZero() const {
    return ranks_.empty() ? std::nullopt : std::optional(ranks_.rbegin()->second.front());
  }
  // Whether a worker in this one's place has a rank in that view.
  bool HasRank(const inspection::RankHolder& place) const;
  // Whether a view before the newest had a worker in this one's place.
  bool HadRank(const inspection::RankHolder& place) const;

 private:
  void ObserveView(const inspection::SidecarStatus& status, TimePoint now);
  void ObserveRebuild(const job::Rebuild& rebuild, TimePoint now);
  void InferBootstrap(const job::Rebuild& change, TimePoint now);
  void CompareWithParent(ViewRecord* record);
  void ForgetOld();
  bool IsSettled(const ViewRecord& record, TimePoint now) const;

  std::map<std::uint64_t, ViewRecord> views_;                           // by epoch
  std::map<std::uint64_t, std::vector<inspection::RankHolder>> ranks_;  // by epoch, the newest few
  std::uint64_t forgotten_until_ = 0;                                   // the newest of those
  std::size_t forgotten_ = 0;
  std::int64_t forgotten_steps_lost_ = 0;
  std::uint64_t epoch_ = 0;
  int world_size_ = 0;  // of that view
};

}  // namespace ringmaster::cli
