// A JobController directly on a store: a test sees every call, may refuse it or let something
// happen before it, and can hold watches back.
//
// Thread rule: one test's thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "operator/api/labels.h"
#include "operator/controllers/job_controller.h"
#include "operator/controllers/testing/fake_cluster.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"
#include "operator/planner/planner.h"
#include "operator/planner/proof.h"
#include "tests/support/until.h"

namespace ringmaster::controllers::testing {

using kube::ErrorCode;
using kube::Json;
using support::Until;

struct Call {
  std::string verb;
  std::string resource;
  std::string name;
  Json body;  // for a delete, its uid
  bool dry_run = false;
};

// The store with the hooks described at the head of this file.
class WatchedApi : public local::InMemoryApi {
 public:
  using InMemoryApi::InMemoryApi;
  using Refuse = std::function<std::optional<ErrorCode>(const Call&)>;
  using Before = std::function<void(const Call&)>;
  using Changed = std::function<void(const Call&, Json& patch)>;
  using Held = std::function<bool(const kube::Resource& resource, const std::string& ns,
                                  const kube::WatchOptions& options)>;

  void SetRefuse(Refuse refuse) {
    const std::lock_guard lock(mu_);
    refuse_ = std::move(refuse);
  }
  // Runs in the caller's thread; everything that it refers to has to outlive the controller.
  void SetBefore(Before before) {
    const std::lock_guard lock(mu_);
    before_ = std::move(before);
  }
  // Changes a patch before it reaches the store.
  void SetChanged(Changed changed) {
    const std::lock_guard lock(mu_);
    changed_ = std::move(changed);
  }
  // Watches of this resource receive nothing while `held` returns true. `ns` is empty for a watch
  // of all namespaces.
  void SetHeld(Held held) {
    const std::lock_guard lock(mu_);
    held_ = std::move(held);
  }
  // Lists of one job's pods contain these, too, in place of those with the same uid.
  void SetExtraPods(std::vector<Json> pods) {
    const std::lock_guard lock(mu_);
    extra_ = std::move(pods);
  }
  std::vector<Call> Calls(const std::string& verb, const std::string& resource) const {
    const std::lock_guard lock(mu_);
    std::vector<Call> calls;
    for (const Call& call : calls_) {
      if (call.verb == verb && call.resource == resource) calls.push_back(call);
    }
    return calls;
  }

  struct Patched {
    Call call;
    bool was_done;
  };
  // The patches that the store has answered, in this order.
  std::vector<Patched> AnsweredPatches() const {
    const std::lock_guard lock(mu_);
    return patched_;
  }

  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    if (auto error = Note({"get", resource.plural, name, {}})) return tl::unexpected(*error);
    return InMemoryApi::Get(resource, ns, name);
  }
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    if (auto error = Note({"list", resource.plural, options.label_selector, {}})) {
      return tl::unexpected(*error);
    }
    auto list = InMemoryApi::ListAll(resource, ns, options);
    const std::lock_guard lock(mu_);
    if (list && options.label_selector.find(api::kJobUidLabel) != std::string::npos) {
      for (const Json& pod : extra_) {
        std::erase_if(list->items, [&](const Json& item) {
          return runtime::MetaField(item, "uid") == runtime::MetaField(pod, "uid");
        });
        list->items.push_back(pod);
      }
    }
    return list;
  }
  kube::Result<Json> CreateWith(const kube::Resource& resource, const std::string& ns,
                                const Json& object, const kube::CreateOptions& options) override {
    if (auto error = Note({"create", resource.plural, runtime::MetaField(object, "name"), object,
                           options.dry_run})) {
      return tl::unexpected(*error);
    }
    return InMemoryApi::CreateWith(resource, ns, object, options);
  }
  kube::Result<Json> Patch(const kube::Resource& resource, const std::string& ns,
                           const std::string& name, const Json& patch,
                           const kube::PatchOptions& options) override {
    const Call call = {"patch", resource.plural, name, patch};
    if (auto error = Note(call)) return tl::unexpected(*error);
    Json changed = patch;
    {
      const std::lock_guard lock(mu_);
      if (changed_) changed_(call, changed);
    }
    auto answer = InMemoryApi::Patch(resource, ns, name, changed, options);
    const std::lock_guard lock(mu_);
    patched_.push_back({call, answer.has_value()});
    return answer;
  }
  kube::Result<Json> Update(const kube::Resource& resource, const std::string& ns,
                            const Json& object, const std::string& subresource) override {
    if (auto error =
            Note({"update", resource.plural, runtime::MetaField(object, "name"), object})) {
      return tl::unexpected(*error);
    }
    return InMemoryApi::Update(resource, ns, object, subresource);
  }
  kube::Result<void> Delete(const kube::Resource& resource, const std::string& ns,
                            const std::string& name, const kube::DeleteOptions& options) override {
    if (auto error = Note({"delete", resource.plural, name, options.uid})) {
      return tl::unexpected(*error);
    }
    return InMemoryApi::Delete(resource, ns, name, options);
  }
  kube::Result<void> Watch(const kube::Resource& resource, const std::string& ns,
                           const kube::WatchOptions& options, const kube::WatchHandler& on_event,
                           std::stop_token stop) override {
    const auto when_let_go = [&](const kube::WatchEvent& event) {
      (void)Until([&] { return stop.stop_requested() || !IsHeld(resource, ns, options); });
      return on_event(event);
    };
    return InMemoryApi::Watch(resource, ns, options, when_let_go, stop);
  }

 private:
  bool IsHeld(const kube::Resource& resource, const std::string& ns,
              const kube::WatchOptions& options) const {
    const std::lock_guard lock(mu_);
    return held_ && held_(resource, ns, options);
  }
  std::optional<kube::Error> Note(Call call) {
    Before before;
    {
      const std::lock_guard lock(mu_);
      before = before_;
    }
    if (before) before(call);
    const std::lock_guard lock(mu_);
    const auto code = refuse_ ? refuse_(call) : std::nullopt;
    calls_.push_back(std::move(call));
    if (!code) return std::nullopt;
    return kube::Error{.code = *code, .message = "the test says no"};
  }
  mutable std::mutex mu_;
  Refuse refuse_;                 // guarded by mu_
  Before before_;                 // guarded by mu_
  Changed changed_;               // guarded by mu_
  Held held_;                     // guarded by mu_
  std::vector<Json> extra_;       // guarded by mu_
  std::vector<Call> calls_;       // guarded by mu_
  std::vector<Patched> patched_;  // guarded by mu_
};

inline std::string Crd() {
  std::ifstream file(RM_CRD_FILE);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class JobControllerCallsTest : public ::testing::Test {
 protected:
  explicit JobControllerCallsTest(const std::string& crd = Crd())
      : store_(std::make_shared<local::Store>(local::StoreOptions{.crd_yaml = crd})) {
    StartOperator();
  }
  ~JobControllerCallsTest() override {
    controller_->Stop();
    cluster_.reset();
    store_->Close();
  }
  void StartOperator(bool gang = false) {
    ASSERT_NO_FATAL_FAILURE(StartOperatorAlone(gang));
    if (cluster_ != nullptr) return cluster_->MoveTo(registry_.get());
    cluster_ = std::make_unique<FakeCluster>(
        api_, "default", registry_.get(),
        [this](const std::string& pod) { (void)store_->Bind("default", pod, "n"); });
  }
  // Starts an operator to which no sidecar has connected yet.
  void StartOperatorAlone(bool gang = false) {
    if (controller_ != nullptr) controller_->Stop();
    if (registry_ != nullptr) old_registries_.push_back(std::move(registry_));
    controller_.reset();  // uses the two others until its end
    registry_ = std::make_unique<SidecarRegistry>();
    records_ = std::make_unique<QuorumRecordStore>(api_);
    JobControllerOptions options;
    options.pod.sidecar_target = "unix:/tmp/operator.sock";
    options.queue.first_backoff = std::chrono::milliseconds(5);
    options.queue.max_backoff = std::chrono::milliseconds(100);
    options.gang_admission = options.pod.counted = gang;
    controller_ = std::make_unique<JobController>(api_, registry_.get(), records_.get(), options);
    const auto started = controller_->Start();
    ASSERT_TRUE(started) << started.error().message;
  }
  static Json JobNamed(const std::string& name, const Json& spec) {
    Json job = Json::parse(R"({
      "apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {},
      "spec": {"elasticPolicy": {"minReplicas": 2, "maxReplicas": 8}, "worker": {"replicas": 2,
        "template": {"spec": {"containers": [
        {"name": "worker", "image": "digits", "command": ["train"]}]}}}}})");
    job["metadata"]["name"] = name;
    job["spec"].merge_patch(spec);
    return job;
  }
  Json Apply(const std::string& name = "digits", const Json& spec = Json::object()) {
    const auto created = api_->Create(kube::HorovodJobs(), "default", JobNamed(name, spec));
    EXPECT_TRUE(created) << created.error().message;
    return created ? *created : Json();
  }
  void Change(const Json& spec) {
    ASSERT_TRUE(api_->Patch(kube::HorovodJobs(), "default", "digits", {{"spec", spec}}, {}));
  }
  // A pod that looks like one of the job `job`, but was not created by the controller.
  Json Stranger(const std::string& name, const std::string& job, const std::string& owner_uid) {
    Json pod = {{"metadata",
                 {{"name", name},
                  {"namespace", "default"},
                  {"labels",
                   {{api::kJobNameLabel, job},
                    {api::kJobUidLabel, owner_uid.empty() ? "a-former-job" : owner_uid},
                    {api::kJobRoleLabel, "worker"},
                    {api::kReplicaIndexLabel, "7"}}},
                  {"finalizers", {api::kProofFinalizer}}}},
                {"spec",
                 {{"schedulingGates", {{{"name", "example.com/not-yet"}}}},
                  {"containers", {{{"name", "worker"}, {"image", "i"}}}}}}};
    if (!owner_uid.empty()) {
      pod["metadata"]["ownerReferences"] = {{{"apiVersion", api::kApiVersion},
                                             {"kind", api::kKind},
                                             {"name", job},
                                             {"uid", owner_uid},
                                             {"controller", true},
                                             {"blockOwnerDeletion", true}}};
    }
    return pod;
  }
  Json Get(const kube::Resource& resource, const std::string& name) {
    const auto object = store_api_.Get(resource, "default", name);
    return object ? *object : Json();
  }
  api::Status Status(const std::string& job = "digits") {
    return api::StatusFromJson(Get(kube::HorovodJobs(), job).value("status", Json::object()));
  }
  bool Trains(std::size_t pods) {
    return Until([&] {
      const api::Status status = Status();
      return status.state == "Running" && status.ring.size() == pods &&
             cluster_->Members().size() == pods;
    });
  }

  const std::shared_ptr<local::Store> store_;
  local::InMemoryApi store_api_{store_};  // for the test's own calls
  const std::shared_ptr<WatchedApi> api_ = std::make_shared<WatchedApi>(store_);
  std::vector<std::unique_ptr<SidecarRegistry>> old_registries_;
  std::unique_ptr<SidecarRegistry> registry_;
  std::unique_ptr<QuorumRecordStore> records_;
  std::unique_ptr<JobController> controller_;
  std::unique_ptr<FakeCluster> cluster_;
};

}  // namespace ringmaster::controllers::testing
