#include "operator/cli/observer.h"

#include <set>
#include <utility>

#include "common/sync/pause.h"

namespace ringmaster::cli {
namespace {

std::string NameOf(const kube::Json& object) {
  return object.value("/metadata/name"_json_pointer, "");
}

std::string VersionOf(const kube::Json& object) {
  return object.value("/metadata/resourceVersion"_json_pointer, "");
}

}  // namespace

Observer::Observer(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
                   std::string ns, std::function<void(const kube::Json&, bool)> on_object)
    : api_(std::move(api)),
      resource_(resource),
      ns_(std::move(ns)),
      on_object_(std::move(on_object)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

Observer::~Observer() {
  thread_.request_stop();
  thread_.join();
}

void Observer::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    Follow(stop);
    sync::Pause(stop, std::chrono::milliseconds(100));
  }
}

void Observer::Follow(std::stop_token stop) {
  auto list = api_->ListAll(resource_, ns_, {});
  if (!list) return;
  std::set<std::string> listed;
  for (const kube::Json& object : list->items) {
    listed.insert(NameOf(object));
    known_[NameOf(object)] = object;
    on_object_(object, false);
  }
  for (auto it = known_.begin(); it != known_.end();) {
    if (listed.count(it->first)) {
      ++it;
      continue;
    }
    on_object_(it->second, true);
    it = known_.erase(it);
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
        known_.erase(NameOf(event.object));
      else
        known_[NameOf(event.object)] = event.object;
      on_object_(event.object, gone);
      return true;
    };
    alive = api_->Watch(resource_, ns_, options, on_event, stop).has_value();
  }
}

}  // namespace ringmaster::cli
