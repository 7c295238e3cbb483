// Maintains the objects that a job has beside its pods (child_object_builder.h): creates missing
// ones, corrects changed ones, and renews the certificate before it expires. The job owns them, so
// the garbage collector deletes them.
//
// Thread rule: Start and Stop from one thread, Keep from any.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
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
  std::optional<tls::KeyPair> authority;      // none: no TLS, and so no Secret
  std::string ring_key;                       // one for all jobs; empty: each job gets its own
  NetworkPolicyOptions network_policy;
  // The API version of PodGroups, if the API server serves them and they are used.
  std::optional<kube::Resource> pod_groups;
  // Secrets are not watched, because that would need the right to read all of them; they are read
  // this often instead.
  std::chrono::milliseconds secret_check{std::chrono::minutes(10)};
};

class ChildObjects {
 public:
  // `changed` is called when an object of this job (namespace/name) has changed.
  ChildObjects(std::shared_ptr<kube::KubeApi> api, ChildObjectOptions options,
               std::function<void(const std::string& job_key)> changed);

  void Start();
  void Stop();
  // The caches that must be synced before Keep is called.
  std::vector<runtime::Informer*> informers();

  struct Outcome {
    std::vector<kube::Error> problems;  // empty: all objects are as they should be
    std::optional<std::chrono::milliseconds> look_again;
  };
  // `grouped`: the job has a PodGroup.
  Outcome Keep(const api::HorovodJob& job, bool grouped = false);
  void Forget(const std::string& job_uid);
  // The job's own Secret was there at the last look, or the job needs none.
  bool HasSecret(const api::HorovodJob& job) const;
  // The job's PodGroup exists.
  bool HasPodGroup(const api::HorovodJob& job) const;
  // The API server has refused to make the job's PodGroup, for a reason that waiting does not mend,
  // and has not made it since.
  bool PodGroupIsRefused(const api::HorovodJob& job) const;

 private:
  kube::Result<void> KeepObject(const api::HorovodJob& job, const kube::Resource& resource,
                                runtime::Informer* cache, const kube::Json& wanted);
  kube::Result<void> KeepSecret(const api::HorovodJob& job);
  kube::Result<void> KeepPodGroup(const api::HorovodJob& job);
  // `found` is the existing Secret; null if there is none.
  kube::Result<void> WriteSecret(const api::HorovodJob& job, const nlohmann::json& found);

  const std::shared_ptr<kube::KubeApi> api_;
  const ChildObjectOptions options_;
  const tl::expected<tls::Issuer, std::string> issuer_;
  runtime::Informer services_, budgets_, policies_;
  std::unique_ptr<runtime::Informer> pod_groups_;  // null: PodGroups are not used
  mutable sync::Mutex mu_;
  // When a job's Secret was last found good, by job uid.
  std::map<std::string, std::chrono::steady_clock::time_point> secret_seen_ GUARDED_BY(mu_);
  std::set<std::string> without_group_ GUARDED_BY(mu_);  // uids: see PodGroupIsRefused
};

}  // namespace ringmaster::controllers
