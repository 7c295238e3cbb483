#include "operator/runtime/event_recorder.h"

#include <fmt/format.h>

#include <chrono>

#include "common/logging/log.h"
#include "common/plain_text/plain_text.h"
#include "operator/api/labels.h"
#include "operator/api/time.h"

namespace ringmaster::runtime {
namespace {

constexpr std::int64_t kSeriesMs = 6 * 60 * 1000;
constexpr std::size_t kMaxSeries = 4096;
constexpr std::size_t kMaxNote = 1000;  // the API's limit is 1024 bytes

std::int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

kube::Json ToJson(const ObjectReference& object) {
  return {{"apiVersion", object.api_version},
          {"kind", object.kind},
          {"namespace", object.ns},
          {"name", object.name},
          {"uid", object.uid},
          {"resourceVersion", object.resource_version}};
}

}  // namespace

EventRecorder::EventRecorder(std::shared_ptr<kube::KubeApi> api, std::string instance)
    : api_(std::move(api)), instance_(std::move(instance)) {}

void EventRecorder::Record(const ObjectReference& regarding, bool warning,
                           const std::string& reason, const std::string& action,
                           const std::string& note, const ObjectReference& related) {
  const std::string text = plain_text::Cut(note, kMaxNote);
  const std::string key = regarding.uid + "/" + reason + "/" + text;
  const std::int64_t now = NowMs();
  std::string name;
  int count = 1;
  {
    const sync::MutexLock lock(&mu_);
    std::erase_if(series_, [&](const auto& s) { return now - s.second.last_seen_ms > kSeriesMs; });
    if (series_.size() >= kMaxSeries) series_.clear();
    Series& series = series_[key];
    if (series.name.empty()) {
      series.name = fmt::format("{}.{:x}", regarding.name,
                                std::hash<std::string>()(key) ^ static_cast<std::size_t>(now));
    } else {
      count = ++series.count;
    }
    series.last_seen_ms = now;
    name = series.name;
  }
  const auto forget = [&] {
    const sync::MutexLock lock(&mu_);
    series_.erase(key);
  };
  if (count == 1) {
    // If this fails there is no object whose count could be raised, so the next event tries again.
    if (!Create(regarding, name, warning, reason, action, text, related)) forget();
    return;
  }
  const kube::Json patch = {
      {"series",
       {{"count", count},
        {"lastObservedTime", api::FormatMicroTime(std::chrono::system_clock::now())}}}};
  const auto patched = api_->Patch(kube::Events(), regarding.ns, name, patch, {});
  if (patched) return;
  if (patched.error().code == kube::ErrorCode::kNotFound) {  // it was deleted or has expired
    forget();
    return Record(regarding, warning, reason, action, note, related);
  }
  logging::Warn("event not updated reason={} regarding={}/{} error={}", reason, regarding.ns,
                regarding.name, logging::Value(patched.error().message));
}

bool EventRecorder::Create(const ObjectReference& regarding, const std::string& name, bool warning,
                           const std::string& reason, const std::string& action,
                           const std::string& note, const ObjectReference& related) {
  kube::Json event = {{"apiVersion", kube::Events().ApiVersion()},
                      {"kind", "Event"},
                      {"metadata", {{"name", name}, {"namespace", regarding.ns}}},
                      {"eventTime", api::FormatMicroTime(std::chrono::system_clock::now())},
                      {"reportingController", api::kOperatorName},
                      {"reportingInstance", instance_},
                      {"action", action},
                      {"reason", reason},
                      {"note", note},
                      {"type", warning ? "Warning" : "Normal"},
                      {"regarding", ToJson(regarding)}};
  if (!related.kind.empty()) event["related"] = ToJson(related);
  const auto created = api_->Create(kube::Events(), regarding.ns, event);
  if (created) return true;
  logging::Warn("event not written reason={} regarding={}/{} error={}", reason, regarding.ns,
                regarding.name, logging::Value(created.error().message));
  return false;
}

}  // namespace ringmaster::runtime
