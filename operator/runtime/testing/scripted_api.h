// An API server with scripted answers: lists come from SetList, watch events from what the test
// pushes.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::runtime {

// A test that waits longer than this has failed.
inline constexpr std::chrono::seconds kPatience{20};

inline kube::Json Object(const std::string& name, int version, const std::string& uid = "uid") {
  return {{"metadata",
           {{"namespace", "ns"},
            {"name", name},
            {"uid", uid},
            {"resourceVersion", std::to_string(version)}}}};
}

class ScriptedApi : public kube::KubeApi {
 public:
  using Json = kube::Json;

  // What the following lists return.
  void SetList(int version, std::vector<Json> objects) {
    const std::lock_guard lock(mu_);
    list_ = {std::move(objects), std::to_string(version)};
  }
  void FailLists(kube::Error error) {
    const std::lock_guard lock(mu_);
    list_ = tl::unexpected(std::move(error));
  }
  // Called while a list is in progress: after it was taken, before it is returned.
  void DuringLists(std::function<void()> hook) { during_list_ = std::move(hook); }

  void Push(kube::WatchEvent::Type type, const Json& object) {
    PushStep(kube::WatchEvent{type, object});
  }
  void EndWatch() { PushStep(kube::Result<void>{}); }
  void BreakWatch(kube::ErrorCode code) { BreakWatch({.code = code, .message = "broken"}); }
  void BreakWatch(kube::Error error) {
    PushStep(kube::Result<void>(tl::unexpected(std::move(error))));
  }

  bool AwaitLists(int n) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, kPatience, [&] { return lists_ >= n; });
  }
  // Waits until the n-th watch has begun; returns its version, or an empty text if it never began.
  std::string AwaitWatch(std::size_t n) {
    std::unique_lock lock(mu_);
    if (!changed_.wait_for(lock, kPatience, [&] { return watches_.size() >= n; })) return "";
    return watches_[n - 1];
  }
  // Label selectors of all lists and watches so far.
  std::set<std::string> selectors() const {
    const std::lock_guard lock(mu_);
    return selectors_;
  }
  int lists() const {
    const std::lock_guard lock(mu_);
    return lists_;
  }

  kube::Result<kube::List> ListAll(const kube::Resource&, const std::string&,
                                   const kube::ListOptions& options) override {
    kube::Result<kube::List> list;
    {
      const std::lock_guard lock(mu_);
      selectors_.insert(options.label_selector);
      list = list_;
    }
    if (during_list_) during_list_();
    const std::lock_guard lock(mu_);
    ++lists_;
    changed_.notify_all();
    return list;
  }

  kube::Result<void> Watch(const kube::Resource&, const std::string&,
                           const kube::WatchOptions& options, const kube::WatchHandler& on_event,
                           std::stop_token stop) override {
    std::unique_lock lock(mu_);
    watches_.push_back(options.resource_version);
    selectors_.insert(options.label_selector);
    changed_.notify_all();
    while (changed_.wait(lock, stop, [&] { return !steps_.empty(); })) {
      const Step step = std::move(steps_.front());
      steps_.pop_front();
      if (const auto* end = std::get_if<kube::Result<void>>(&step)) return *end;
      lock.unlock();
      if (!on_event(std::get<kube::WatchEvent>(step))) return {};
      lock.lock();
    }
    return {};
  }

  kube::Result<Json> Create(const kube::Resource&, const std::string&,
                            const Json& object) override {
    const std::lock_guard lock(mu_);
    if (refuse_creates > 0) {
      --refuse_creates;
      return tl::unexpected(kube::Error{.code = kube::ErrorCode::kUnavailable});
    }
    created.push_back(object);
    return object;
  }
  kube::Result<Json> Patch(const kube::Resource&, const std::string&, const std::string& name,
                           const Json& patch, const kube::PatchOptions&) override {
    const std::lock_guard lock(mu_);
    patched.push_back({{"name", name}, {"patch", patch}});
    return patch;
  }

  // The code under test never calls these.
  kube::Result<Json> Get(const kube::Resource&, const std::string&, const std::string&) override {
    return tl::unexpected(kube::Error{});
  }
  kube::Result<Json> Update(const kube::Resource&, const std::string&, const Json&,
                            const std::string&) override {
    return tl::unexpected(kube::Error{});
  }
  kube::Result<void> Delete(const kube::Resource&, const std::string&, const std::string&,
                            const kube::DeleteOptions&) override {
    return tl::unexpected(kube::Error{});
  }
  kube::Result<void> PodLog(const std::string&, const std::string&, const std::string&, bool,
                            const std::function<bool(std::string_view)>&,
                            std::stop_token) override {
    return tl::unexpected(kube::Error{});
  }

  // Read and set these only while no other thread calls.
  std::vector<Json> created;
  std::vector<Json> patched;  // {name, patch}
  int refuse_creates = 0;

 private:
  using Step = std::variant<kube::WatchEvent, kube::Result<void>>;
  void PushStep(Step step) {
    const std::lock_guard lock(mu_);
    steps_.push_back(std::move(step));
    changed_.notify_all();
  }

  mutable std::mutex mu_;
  std::condition_variable_any changed_;
  kube::Result<kube::List> list_;      // guarded by mu_
  std::function<void()> during_list_;  // constant once an informer runs
  std::deque<Step> steps_;             // guarded by mu_
  std::vector<std::string> watches_;   // resource versions; guarded by mu_
  std::set<std::string> selectors_;    // guarded by mu_
  int lists_ = 0;                      // guarded by mu_
};

}  // namespace ringmaster::runtime
