// What the parts of the reconciler need, over a store of its own: the job "digits", caches of jobs
// and pods that don't run, the queue and the events. A test puts objects into the caches.
//
// Thread rule: one test's thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/labels.h"
#include "operator/api/testing/job_object.h"
#include "operator/controllers/creation_backoff.h"
#include "operator/controllers/event_writer.h"
#include "operator/controllers/finalizers.h"
#include "operator/controllers/node_watcher.h"
#include "operator/controllers/pod_identity.h"
#include "operator/controllers/pod_record.h"
#include "operator/controllers/pod_writer.h"
#include "operator/controllers/sidecar_registry.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "operator/planner/disruption.h"
#include "operator/planner/planner.h"
#include "operator/runtime/informer.h"
#include "operator/runtime/work_queue.h"

namespace ringmaster::controllers::testing {

using kube::Json;
using runtime::MetaField;

// Counts calls that are made at the same time. If a test expects so many, each waits until so many
// wait; one that has waited for long in vain ends that.
class CallsAtOnce {
 public:
  void Expect(int calls) {
    const std::lock_guard lock(mu_);
    expected_ = calls;
    most_ = rounds_ = 0;
  }
  int most() const {
    const std::lock_guard lock(mu_);
    return most_;
  }
  // How often so many have waited.
  int rounds() const {
    const std::lock_guard lock(mu_);
    return rounds_;
  }
  void Begin() {
    std::unique_lock lock(mu_);
    most_ = std::max(most_, ++running_);
    if (expected_ == 0) return;
    const int round = rounds_;
    if (++waiting_ < expected_) {
      change_.wait_for(lock, std::chrono::seconds(10), [&] { return rounds_ != round; });
      if (rounds_ == round) expected_ = waiting_ = 0;
      return;
    }
    waiting_ = 0;
    ++rounds_;
    change_.notify_all();
  }
  void End() {
    const std::lock_guard lock(mu_);
    --running_;
  }

 private:
  mutable std::mutex mu_;
  std::condition_variable change_;
  int expected_ = 0;  // 0: calls don't wait
  int running_ = 0, waiting_ = 0, most_ = 0, rounds_ = 0;
};

// One call of those that are counted.
class CountedCall {
 public:
  CountedCall(CallsAtOnce* calls, bool counts) : calls_(counts ? calls : nullptr) {
    if (calls_ != nullptr) calls_->Begin();
  }
  ~CountedCall() {
    if (calls_ != nullptr) calls_->End();
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  CallsAtOnce* const calls_;
};

// Refuses calls of one verb if a test says so.
class RefusingApi : public local::InMemoryApi {
 public:
  using InMemoryApi::InMemoryApi;
  // "create", "delete", "patch", "update", "list"; empty: none. Atomic, because another thread
  // writes events.
  std::atomic<const char*> refused_verb = "";
  std::atomic<int> creates_allowed = 1'000'000;        // of pods, dry runs not counted
  std::atomic<bool> refuses_dry_runs = false;          // of pods
  std::atomic<int> dry_runs = 0;                       // so far
  std::atomic<const char*> unknown_status_field = "";  // of which the CRD knows nothing
  std::atomic<const char*> unanswered = "";  // plural of what is created without an answer
  std::atomic<int> refusals = 0;             // so far
  std::atomic<int> lists = 0;                // so far
  std::atomic<int> node_reads = 0;           // so far
  CallsAtOnce pods_at_once;                  // reads, patches and deletions of pods
  kube::Error refusal = {
      .code = kube::ErrorCode::kForbidden, .http_status = 403, .message = "the test says no"};

  bool Refuses(std::string_view verb) {
    const bool refuses = verb == refused_verb.load();
    if (refuses) ++refusals;
    return refuses;
  }

  kube::Result<Json> CreateWith(const kube::Resource& resource, const std::string& ns,
                                const Json& object, const kube::CreateOptions& options) override {
    const bool of_pod = resource == kube::Pods();
    if (of_pod && options.dry_run) {
      ++dry_runs;
      if (refuses_dry_runs) return tl::unexpected(refusal);
    }
    const bool counts = of_pod && !options.dry_run;
    if (Refuses("create") || (counts && creates_allowed-- <= 0)) return tl::unexpected(refusal);
    if (resource.plural == unanswered.load()) {
      (void)InMemoryApi::CreateWith(resource, ns, object, options);
      return tl::unexpected(kube::Error{.code = kube::ErrorCode::kUnavailable});
    }
    if (!of_pod) return InMemoryApi::CreateWith(resource, ns, object, options);
    Json changed = object;
    const std::lock_guard lock(mu_);
    if (MetaField(object, "name").rfind(admitted_, 0) == 0) changed.merge_patch(admission_);
    return InMemoryApi::CreateWith(resource, ns, changed, options);
  }
  // What an admission plugin does to each pod that is created and whose name begins so, as a merge
  // patch.
  void SetAdmission(Json changes, std::string names = "") {
    const std::lock_guard lock(mu_);
    admission_ = std::move(changes);
    admitted_ = std::move(names);
  }
  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    const CountedCall call(&pods_at_once, resource == kube::Pods());
    if (resource == kube::Nodes()) ++node_reads;
    return InMemoryApi::Get(resource, ns, name);
  }
  kube::Result<Json> Patch(const kube::Resource& resource, const std::string& ns,
                           const std::string& name, const Json& patch,
                           const kube::PatchOptions& options) override {
    const CountedCall call(&pods_at_once, resource == kube::Pods());
    if (Refuses("patch")) return tl::unexpected(refusal);
    return InMemoryApi::Patch(resource, ns, name, patch, options);
  }
  kube::Result<void> Delete(const kube::Resource& resource, const std::string& ns,
                            const std::string& name, const kube::DeleteOptions& options) override {
    const CountedCall call(&pods_at_once, resource == kube::Pods());
    if (Refuses("delete")) return tl::unexpected(refusal);
    return InMemoryApi::Delete(resource, ns, name, options);
  }
  kube::Result<Json> Update(const kube::Resource& resource, const std::string& ns,
                            const Json& object, const std::string& subresource) override {
    if (Refuses("update")) return tl::unexpected(refusal);
    Json kept = object;
    if (kept.contains("status")) kept["status"].erase(unknown_status_field.load());
    return InMemoryApi::Update(resource, ns, kept, subresource);
  }
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    ++lists;
    if (Refuses("list")) return tl::unexpected(refusal);
    return InMemoryApi::ListAll(resource, ns, options);
  }

 private:
  std::mutex mu_;
  Json admission_ = Json::object();  // guarded by mu_
  std::string admitted_;             // guarded by mu_
};

class PartsTest : public ::testing::Test {
 protected:
  PartsTest() {
    const auto made =
        api_->Create(kube::HorovodJobs(), "default", api::testing::JobObject("digits", 2, 1));
    EXPECT_TRUE(made) << made.error().message;
    object_ = *made;
    jobs_.Observe(object_);
    const auto parsed = api::ParseHorovodJob(object_);
    EXPECT_TRUE(parsed) << api::ToString(parsed.error());
    job_ = *parsed;
  }
  ~PartsTest() override { store_->Close(); }

  // Creates a worker pod of the job at the API server; `known`: and in the cache.
  Json MakePod(int index, const Json& changes = Json::object(), bool known = true) {
    Json pod = {{"metadata",
                 {{"name", planner::PodName("digits", index)},
                  {"namespace", "default"},
                  {"labels", LabelsOf(job_, index)},
                  {"ownerReferences", Json::array({OwnerReference(job_.name, job_.uid)})}}},
                {"spec", {{"containers", {{{"name", "worker"}, {"image", "i"}}}}}}};
    pod.merge_patch(changes);
    const auto made = api_->Create(kube::Pods(), "default", pod);
    EXPECT_TRUE(made) << made.error().message;
    if (known) pods_.Observe(*made);
    return *made;
  }
  Json Pod(int index) {
    const auto pod = api_->Get(kube::Pods(), "default", planner::PodName("digits", index));
    return pod ? *pod : Json();
  }
  std::vector<std::string> EventReasons() {
    std::vector<std::string> reasons;
    EXPECT_TRUE(events_.Flush(std::chrono::seconds(20)));
    const auto events = api_->ListAll(kube::Events(), "default", {});
    if (!events) return reasons;
    for (const Json& event : events->items) reasons.push_back(event.value("reason", ""));
    return reasons;
  }

  const std::shared_ptr<local::Store> store_ =
      std::make_shared<local::Store>(local::StoreOptions{});
  const std::shared_ptr<RefusingApi> api_ = std::make_shared<RefusingApi>(store_);
  runtime::WorkQueue queue_;
  runtime::Informer jobs_{api_, kube::HorovodJobs(), {}, [](const Json&, bool) {}};
  runtime::Informer pods_{api_, kube::Pods(), InformerOptionsForPods(), [](const Json&, bool) {}};
  SidecarRegistry registry_;
  EventWriter events_{api_, "test", &pods_};
  // Too long for a test to reach the end.
  CreationBackoff backoff_{{std::chrono::hours(1), std::chrono::hours(1)}, &queue_, &events_};
  NodeWatcher nodes_{api_, {planner::DefaultDisruptionTaints()}, [](const std::string&) {}};
  PodWriter writer_{api_, {&pods_, &jobs_}, &queue_, &backoff_, &events_, {}};
  Json object_;  // of the job
  api::HorovodJob job_;
};

}  // namespace ringmaster::controllers::testing
