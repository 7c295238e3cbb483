// Keeps the objects that a job has beside its pods (child_object_builder.h) as they should be: made
// when they are missing, mended when they are changed, the certificate renewed before it expires.
// Taking them away is the garbage collector's: the job owns them.
//
// Thread rule: Start and Stop from one thread, Keep from any.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/sync/mutex.h"
#include "common/tls/certificate.h"
#include "operator/api/horovod_job.h"
#include "operator/controllers/child_object_builder.h"
#include "operator/kube/kube_api.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

struct ChildObjectOptions {
  std::vector<std::string> watch_namespaces;  // empty: all
  std::optional<tls::KeyPair> authority;      // none: no TLS, so no Secret either
  std::string ring_key;                       // of all jobs; empty: each has one of its own
  NetworkPolicyOptions network_policy;
  // Where the API server serves PodGroups and they are used: which version.
  std::optional<kube::Resource> pod_groups;
  // Secrets are not watched (the right to watch all of them would be much to ask for): they are
  // looked at this often.
  std::chrono::milliseconds secret_check{std::chrono::minutes(10)};
};

class ChildObjects {
 public:
  // `changed`: an object of this job (namespace/name) is not what it was.
  ChildObjects(std::shared_ptr<kube::KubeApi> api, ChildObjectOptions options,
               std::function<void(const std::string& job_key)> changed);

  void Start();
  void Stop();
  // The caches that have to be synced before Keep is called.
  std::vector<runtime::Informer*> informers();

  struct Outcome {
    std::vector<kube::Error> problems;        // empty: all is as it should be
    std::optional<kube::Error> no_pod_group;  // one of them: why the job has no PodGroup
    std::optional<std::chrono::milliseconds> look_again;
  };
  // `grouped`: the job has a PodGroup.
  Outcome Keep(const api::HorovodJob& job, bool grouped = false);
  void Forget(const std::string& job_uid);
  // The job's PodGroup is there.
  bool HasPodGroup(const api::HorovodJob& job) const;

 private:
  kube::Result<void> KeepObject(const api::HorovodJob& job, const kube::Resource& resource,
                                runtime::Informer* cache, const kube::Json& wanted);
  kube::Result<void> KeepSecret(const api::HorovodJob& job);
  // `found`: the Secret that is there; null: none.
  kube::Result<void> WriteSecret(const api::HorovodJob& job, const nlohmann::json& found);

  const std::shared_ptr<kube::KubeApi> api_;
  const ChildObjectOptions options_;
  runtime::Informer services_, budgets_, policies_;
  std::unique_ptr<runtime::Informer> pod_groups_;  // null: none are used
  sync::Mutex mu_;
  // When the Secret of a job (by uid) was last found good.
  std::map<std::string, std::chrono::steady_clock::time_point> secret_seen_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
