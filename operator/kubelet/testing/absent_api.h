// KubeApi whose server a test can take away, and that answers for LogChunks, which a bare store
// doesn't know.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "operator/kube/errors.h"
#include "operator/kube/testing/wrapped_api.h"
#include "operator/kubelet/log_chunk.h"
#include "operator/local/store/in_memory_api.h"
#include "operator/local/store/store.h"

namespace ringmaster::kubelet::testing {

class AbsentApi : public kube::testing::WrappedApi {
 public:
  explicit AbsentApi(std::shared_ptr<local::Store> store)
      : WrappedApi(std::make_shared<local::InMemoryApi>(std::move(store))) {}

  std::atomic<bool> away{false};
  std::atomic<int> refused{0};                                           // calls while it was away
  std::function<local::Answer<kube::Json>(const kube::Json&)> take_log;  // set before it is used

  kube::Result<kube::Json> Get(const kube::Resource& resource, const std::string& ns,
                               const std::string& name) override {
    if (away) return Refuse();
    return WrappedApi::Get(resource, ns, name);
  }
  kube::Result<kube::Json> CreateWith(const kube::Resource& resource, const std::string& ns,
                                      const kube::Json& object,
                                      const kube::CreateOptions& options) override {
    if (away) return Refuse();
    if (!(resource == LogChunks())) return WrappedApi::CreateWith(resource, ns, object, options);
    const auto taken = take_log(object);
    if (!taken) return tl::unexpected(kube::Unavailable("log", taken.error().dump()));
    return kube::Json{{"status", *taken}};
  }
  kube::Result<kube::Json> Patch(const kube::Resource& resource, const std::string& ns,
                                 const std::string& name, const kube::Json& patch,
                                 const kube::PatchOptions& options) override {
    if (away) return Refuse();
    return WrappedApi::Patch(resource, ns, name, patch, options);
  }

 private:
  tl::unexpected<kube::Error> Refuse() {
    ++refused;
    return tl::unexpected(kube::Unavailable("test", "the server is away"));
  }
};

}  // namespace ringmaster::kubelet::testing
