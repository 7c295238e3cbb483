// A KubeApi that passes every call on to another one. A test overrides the methods that should
// fail, and so makes any API server fail.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "operator/kube/kube_api.h"

namespace ringmaster::kube::testing {

class WrappedApi : public KubeApi {
 public:
  explicit WrappedApi(std::shared_ptr<KubeApi> api) : api_(std::move(api)) {}

  Result<Json> Get(const Resource& resource, const std::string& ns,
                   const std::string& name) override {
    return api_->Get(resource, ns, name);
  }
  Result<List> ListAll(const Resource& resource, const std::string& ns,
                       const ListOptions& options) override {
    return api_->ListAll(resource, ns, options);
  }
  Result<Json> Create(const Resource& resource, const std::string& ns,
                      const Json& object) override {
    return CreateWith(resource, ns, object, {});
  }
  Result<Json> CreateWith(const Resource& resource, const std::string& ns, const Json& object,
                          const CreateOptions& options) override {
    return api_->CreateWith(resource, ns, object, options);
  }
  Result<Json> Update(const Resource& resource, const std::string& ns, const Json& object,
                      const std::string& subresource) override {
    return api_->Update(resource, ns, object, subresource);
  }
  Result<Json> Patch(const Resource& resource, const std::string& ns, const std::string& name,
                     const Json& patch, const PatchOptions& options) override {
    return api_->Patch(resource, ns, name, patch, options);
  }
  Result<void> Delete(const Resource& resource, const std::string& ns, const std::string& name,
                      const DeleteOptions& options) override {
    return api_->Delete(resource, ns, name, options);
  }
  Result<void> Watch(const Resource& resource, const std::string& ns, const WatchOptions& options,
                     const WatchHandler& on_event, std::stop_token stop) override {
    return api_->Watch(resource, ns, options, on_event, std::move(stop));
  }
  Result<void> PodLog(const std::string& ns, const std::string& pod, const std::string& container,
                      bool follow, const std::function<bool(std::string_view)>& on_text,
                      std::stop_token stop) override {
    return api_->PodLog(ns, pod, container, follow, on_text, std::move(stop));
  }
  Result<void> PodLogWith(const std::string& ns, const std::string& pod,
                          const PodLogOptions& options,
                          const std::function<bool(std::string_view)>& on_text,
                          std::stop_token stop) override {
    return api_->PodLogWith(ns, pod, options, on_text, std::move(stop));
  }
  Result<std::string> PodProxy(const std::string& ns, const std::string& pod,
                               const PodProxyRequest& request) override {
    return api_->PodProxy(ns, pod, request);
  }

 private:
  const std::shared_ptr<KubeApi> api_;
};

}  // namespace ringmaster::kube::testing
