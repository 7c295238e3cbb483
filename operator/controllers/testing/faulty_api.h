// An API server as the controller may find it: it refuses calls as the test says, and counts them.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "operator/kube/testing/wrapped_api.h"

namespace ringmaster::controllers::testing {

class FaultyApi : public kube::testing::WrappedApi {
 public:
  using Json = kube::Json;
  using WrappedApi::WrappedApi;

  // Refuses creation of this resource only; nullopt: allows it again.
  void Refuse(const kube::Resource& resource, std::optional<kube::Error> error) {
    const std::lock_guard lock(mu_);
    refused_ = resource;
    one_refusal_ = std::move(error);
  }
  // Refuses all creations by the controller.
  void RefuseCreates(std::optional<kube::Error> error) {
    const std::lock_guard lock(mu_);
    refusal_ = std::move(error);
  }
  // Watches of this resource report no changes from now on, as if they had stalled.
  void StallWatch(const kube::Resource& resource) {
    const std::lock_guard lock(mu_);
    stalled_ = resource;
  }
  // Single objects of this resource can't be read.
  void RefuseGets(const kube::Resource& resource) {
    const std::lock_guard lock(mu_);
    hidden_ = resource;
  }
  int refused_gets() const { return refused_gets_; }
  // Answers as to a caller without rights for nodes.
  void ForbidNodes() { nodes_forbidden_ = true; }
  // Adds this to every job that is read, as a server with another definition of jobs would.
  void SpoilJobs(Json patch) {
    const std::lock_guard lock(mu_);
    spoiled_ = std::move(patch);
  }
  int pod_creates() const { return pod_creates_; }
  int record_creates() const { return record_creates_; }
  int writes() const { return writes_; }

  kube::Result<Json> Get(const kube::Resource& resource, const std::string& ns,
                         const std::string& name) override {
    if (IsHidden(resource)) {
      ++refused_gets_;
      return tl::unexpected(kube::Error{.code = kube::ErrorCode::kUnavailable, .message = "away"});
    }
    return Spoiled(resource, WrappedApi::Get(resource, ns, name));
  }
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override {
    if (resource == kube::Nodes() && nodes_forbidden_) {
      return tl::unexpected(kube::Error{.code = kube::ErrorCode::kForbidden,
                                        .http_status = 403,
                                        .message = "nodes is forbidden: cannot list nodes"});
    }
    auto list = WrappedApi::ListAll(resource, ns, options);
    if (list) {
      for (Json& item : list->items) Spoil(resource, item);
    }
    return list;
  }
  kube::Result<void> Watch(const kube::Resource& resource, const std::string& ns,
                           const kube::WatchOptions& options, const kube::WatchHandler& on_event,
                           std::stop_token stop) override {
    const auto spoiled = [&](kube::WatchEvent event) {
      if (Stalls(resource)) return true;
      Spoil(resource, event.object);
      return on_event(event);
    };
    return WrappedApi::Watch(resource, ns, options, spoiled, std::move(stop));
  }
  kube::Result<Json> CreateWith(const kube::Resource& resource, const std::string& ns,
                                const Json& object, const kube::CreateOptions& options) override {
    ++writes_;
    if (resource == kube::Pods()) ++pod_creates_;
    if (resource == kube::ConfigMaps()) ++record_creates_;
    {
      const std::lock_guard lock(mu_);
      const auto& refusal = resource == refused_ && one_refusal_ ? one_refusal_ : refusal_;
      if (refusal) return tl::unexpected(*refusal);
    }
    return WrappedApi::CreateWith(resource, ns, object, options);
  }
  kube::Result<Json> Update(const kube::Resource& resource, const std::string& ns,
                            const Json& object, const std::string& subresource) override {
    ++writes_;
    return Spoiled(resource, WrappedApi::Update(resource, ns, object, subresource));
  }
  kube::Result<Json> Patch(const kube::Resource& resource, const std::string& ns,
                           const std::string& name, const Json& patch,
                           const kube::PatchOptions& options) override {
    ++writes_;
    return Spoiled(resource, WrappedApi::Patch(resource, ns, name, patch, options));
  }

 private:
  bool IsHidden(const kube::Resource& resource) {
    const std::lock_guard lock(mu_);
    return hidden_ && *hidden_ == resource;
  }
  bool Stalls(const kube::Resource& resource) {
    const std::lock_guard lock(mu_);
    return stalled_ && *stalled_ == resource;
  }
  kube::Result<Json> Spoiled(const kube::Resource& resource, kube::Result<Json> answer) {
    if (answer) Spoil(resource, *answer);
    return answer;
  }
  void Spoil(const kube::Resource& resource, Json& object) {
    const std::lock_guard lock(mu_);
    if (spoiled_.is_object() && resource == kube::HorovodJobs()) object.merge_patch(spoiled_);
  }

  std::mutex mu_;
  std::optional<kube::Error> refusal_, one_refusal_;  // guarded by mu_
  kube::Resource refused_;                            // guarded by mu_
  Json spoiled_;                                      // guarded by mu_
  std::optional<kube::Resource> stalled_, hidden_;    // guarded by mu_
  std::atomic<bool> nodes_forbidden_ = false;
  std::atomic<int> pod_creates_ = 0, record_creates_ = 0, writes_ = 0, refused_gets_ = 0;
};

}  // namespace ringmaster::controllers::testing
