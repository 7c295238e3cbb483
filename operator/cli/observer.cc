#include "operator/cli/observer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <utility>

#include "common/sync/pause.h"

namespace ringmaster::cli {
namespace {

constexpr std::chrono::milliseconds kFirstWait{100}, kLongestWait{5'000};
// The server of a run on this machine goes a moment before its readers see that the run has ended.
constexpr std::chrono::seconds kUntilTold{3};

std::string UidOf(const kube::Json& object) {
  return object.value("/metadata/uid"_json_pointer, "");
}

std::string VersionOf(const kube::Json& object) {
  return object.value("/metadata/resourceVersion"_json_pointer, "");
}

}  // namespace

void SayOnStandardError(const std::string& error) {
  std::fprintf(stderr, "ringmaster: %s; trying again\n", error.c_str());
}

Observer::Observer(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
                   std::string ns, std::function<void(const kube::Json&, bool)> on_object,
                   std::function<void(const std::string&)> on_error)
    : api_(std::move(api)),
      resource_(resource),
      ns_(std::move(ns)),
      on_object_(std::move(on_object)),
      on_error_(std::move(on_error)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

Observer::~Observer() {
  thread_.request_stop();
  thread_.join();
}

void Observer::Run(std::stop_token stop) {
  auto wait = kFirstWait;
  while (!stop.stop_requested()) {
    wait = Follow(stop) ? kFirstWait : std::min(wait * 2, kLongestWait);
    sync::Pause(stop, wait);
  }
}

void Observer::Tell(const std::string& error) {
  const auto now = std::chrono::steady_clock::now();
  if (!failing_since_) failing_since_ = now;
  if (now - *failing_since_ < kUntilTold || !on_error_) return;
  if (std::exchange(told_, error) != error) on_error_(error);
}

bool Observer::Follow(std::stop_token stop) {
  auto list = api_->ListAll(resource_, ns_, {});
  if (stop.stop_requested()) return false;
  if (!list) {
    Tell(list.error().message);
    return false;
  }
  failing_since_.reset();
  told_.clear();
  std::set<std::string> listed;
  for (const kube::Json& object : list->items) listed.insert(UidOf(object));
  // Before those that are there: one of them may have the name of one that has gone.
  std::erase_if(known_, [&](const auto& known) {
    if (listed.contains(known.first)) return false;
    on_object_(known.second, true);
    return true;
  });
  for (const kube::Json& object : list->items) {
    known_[UidOf(object)] = object;
    on_object_(object, false);
  }
  kube::WatchOptions options;
  options.resource_version = list->resource_version;
  bool alive = true;
  while (alive && !stop.stop_requested()) {
    auto on_event = [&](const kube::WatchEvent& event) {
      options.resource_version = VersionOf(event.object);
      if (event.type == kube::WatchEvent::Type::kBookmark) return true;
      bool gone = event.type == kube::WatchEvent::Type::kDeleted;
      if (gone)
        known_.erase(UidOf(event.object));
      else
        known_[UidOf(event.object)] = event.object;
      on_object_(event.object, gone);
      return true;
    };
    alive = api_->Watch(resource_, ns_, options, on_event, stop).has_value();
  }
  return true;
}

}  // namespace ringmaster::cli
