// KubeApi straight over a Store, no HTTP between: for the kubelet of the same process, and for
// tests of controllers.
//
//   auto store = std::make_shared<local::Store>(local::StoreOptions{});
//   local::InMemoryApi api(store);
//
// Objects and errors are the same as through the REST client (kube_conformance_test runs on both).
// Thread rule: every method is safe from any thread.
#pragma once

#include <memory>

#include "operator/kube/kube_api.h"

namespace ringmaster::local {

class Store;

class InMemoryApi : public kube::KubeApi {
 public:
  explicit InMemoryApi(std::shared_ptr<Store> store);
  ~InMemoryApi() override;

  kube::Result<kube::Json> Get(const kube::Resource& resource, const std::string& ns,
                               const std::string& name) override;
  kube::Result<kube::List> ListAll(const kube::Resource& resource, const std::string& ns,
                                   const kube::ListOptions& options) override;
  kube::Result<kube::Json> Create(const kube::Resource& resource, const std::string& ns,
                                  const kube::Json& object) override;
  kube::Result<kube::Json> CreateWith(const kube::Resource& resource, const std::string& ns,
                                      const kube::Json& object,
                                      const kube::CreateOptions& options) override;
  kube::Result<kube::Json> Update(const kube::Resource& resource, const std::string& ns,
                                  const kube::Json& object,
                                  const std::string& subresource) override;
  kube::Result<kube::Json> Patch(const kube::Resource& resource, const std::string& ns,
                                 const std::string& name, const kube::Json& patch,
                                 const kube::PatchOptions& options) override;
  kube::Result<void> Delete(const kube::Resource& resource, const std::string& ns,
                            const std::string& name, const kube::DeleteOptions& options) override;
  kube::Result<void> Watch(const kube::Resource& resource, const std::string& ns,
                           const kube::WatchOptions& options, const kube::WatchHandler& on_event,
                           std::stop_token stop) override;
  // kNotFound always: there are no containers behind a bare store.
  kube::Result<void> PodLog(const std::string& ns, const std::string& pod,
                            const std::string& container, bool follow,
                            const std::function<bool(std::string_view)>& on_text,
                            std::stop_token stop) override;

 private:
  const std::shared_ptr<Store> store_;
};

}  // namespace ringmaster::local
