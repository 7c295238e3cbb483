// The newest view, and the place that it gives to workers of this pod.
//
// Plain data of the sidecar's loop.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

class PodView {
 public:
  explicit PodView(std::string pod_uid) : pod_uid_(std::move(pod_uid)) {}

  void Set(ViewPtr view) { view_ = std::move(view); }
  const ViewPtr& view() const { return view_; }
  Epoch epoch() const { return view_ == nullptr ? 0 : view_->epoch; }
  int world_size() const { return view_ == nullptr ? 0 : static_cast<int>(view_->ranks.size()); }

  // -1: none.
  int RankOf(const WorkerProcess& worker) const {
    if (view_ == nullptr || worker.standby()) return -1;
    return view_->FindRank(pod_uid_, static_cast<uint32_t>(worker.slot()),
                           worker.identity.incarnation());
  }
  bool Lists(const WorkerProcess& worker) const { return RankOf(worker) >= 0; }
  // The worker is in the view, and has built it.
  bool HasBuilt(const WorkerProcess& worker) const {
    return Lists(worker) && worker.views.installed() >= epoch();
  }
  // Of the view: a worker of this pod.
  bool IsOwn(const membership::RankEntry& rank) const {
    return view_->pods[rank.pod].uid == pod_uid_;
  }

 private:
  const std::string pod_uid_;
  ViewPtr view_;
};

}  // namespace ringmaster::app
