#include "operator/app/leader_label.h"

#include <fmt/format.h>

#include "common/fields/fields.h"
#include "common/logging/log.h"
#include "common/sync/pause.h"
#include "operator/api/labels.h"

namespace ringmaster::app {
namespace {

using kube::Json;

// Two installations in one namespace must not remove each other's labels.
constexpr char kInstanceLabel[] = "/metadata/labels/app.kubernetes.io~1instance";

}  // namespace

LeaderLabel::LeaderLabel(std::shared_ptr<kube::KubeApi> api, std::string ns, std::string pod)
    : api_(std::move(api)), ns_(std::move(ns)), pod_(std::move(pod)) {}

LeaderLabel::~LeaderLabel() = default;

kube::Result<Json> LeaderLabel::Set(const std::string& pod, const Json& value) {
  return api_->Patch(kube::Pods(), ns_, pod,
                     {{"metadata", {{"labels", {{api::kLeaderLabel, value}}}}}}, {});
}

void LeaderLabel::Clear() {
  const auto own = api_->Get(kube::Pods(), ns_, pod_);
  if (own && fields::Text(fields::At(*own, "/metadata/labels"), api::kLeaderLabel).empty()) return;
  if (const auto cleared = own ? Set(pod_, nullptr) : own; !cleared) {
    logging::Warn("leader label not cleared pod={}/{} error={}", ns_, pod_,
                  logging::Value(cleared.error().message));
  }
}

void LeaderLabel::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

void LeaderLabel::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  Clear();
}

std::string LeaderLabel::error() const {
  const sync::MutexLock lock(&mu_);
  return error_;
}

void LeaderLabel::Run(std::stop_token stop) {
  LabelCheckInterval interval;
  while (!stop.stop_requested()) {
    const std::string error = MoveLabelToOwnPod();
    {
      const sync::MutexLock lock(&mu_);
      if (error != error_ && error.empty()) {
        logging::Info("leader label set pod={}/{}", ns_, pod_);
      } else if (error != error_) {
        logging::Warn("leader label not set pod={}/{} error={}", ns_, pod_, logging::Value(error));
      }
      error_ = error;
    }
    sync::Pause(stop, interval.After(error.empty()));
  }
}

std::string LeaderLabel::MoveLabelToOwnPod() {
  const auto own = api_->Get(kube::Pods(), ns_, pod_);
  if (!own) return own.error().message;
  if (fields::Text(fields::At(*own, "/metadata/labels"), api::kLeaderLabel) != "true") {
    if (const auto marked = Set(pod_, "true"); !marked) return marked.error().message;
  }
  const auto all = api_->ListAll(kube::Pods(), ns_,
                                 {.label_selector = fmt::format("{}=true", api::kLeaderLabel)});
  if (!all) return all.error().message;
  for (const Json& pod : all->items) {
    const std::string name = fields::TextAt(pod, "/metadata/name");
    if (name == pod_ || fields::TextAt(pod, kInstanceLabel) != fields::TextAt(*own, kInstanceLabel))
      continue;
    const auto cleared = Set(name, nullptr);
    if (!cleared && cleared.error().code != kube::ErrorCode::kNotFound) {
      return cleared.error().message;
    }
  }
  return "";
}

}  // namespace ringmaster::app
