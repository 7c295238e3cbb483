#include "operator/controllers/child_objects.h"

#include <fmt/format.h>

#include "common/logging/log.h"
#include "common/ring_key/ring_key.h"
#include "operator/api/labels.h"
#include "operator/api/object_key.h"
#include "operator/controllers/child_names.h"
#include "operator/controllers/pod_groups.h"
#include "operator/controllers/pod_identity.h"
#include "operator/planner/planner.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

runtime::InformerOptions Ours(const std::vector<std::string>& namespaces) {
  return {.namespaces = namespaces,
          .label_selector = fmt::format("{}={}", api::kManagedByLabel, api::kManagedBy)};
}

runtime::Informer::Handler Report(const std::function<void(const std::string&)>& changed) {
  return [changed](const Json& object, bool) {
    const auto labels = object.value("/metadata/labels"_json_pointer, Json::object());
    const std::string job = labels.value(api::kJobNameLabel, "");
    if (!job.empty()) changed(api::KeyText(MetaField(object, "namespace"), job));
  };
}

// A former job of this name may own the object, which is then deleted soon. Any other owner's
// object is never touched.
tl::unexpected<kube::Error> NotOurs(const kube::Resource& resource, const std::string& name) {
  return tl::unexpected(kube::Error{
      .code = ErrorCode::kAlreadyExists,
      .message = fmt::format("{} {} is not this job's: it is left as it is; rename or delete it, "
                             "and the job makes its own",
                             resource.kind, name)});
}

// Trying again is in vain: the API server serves this version no more, or refuses the object.
bool IsRefusal(const kube::Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalid ||
         error.code == ErrorCode::kAlreadyExists || error.http_status == 403;
}

}  // namespace

ChildObjects::ChildObjects(std::shared_ptr<kube::KubeApi> api, ChildObjectOptions options,
                           std::function<void(const std::string&)> changed)
    : api_(std::move(api)),
      options_(std::move(options)),
      issuer_(tls::Issuer::Of(options_.authority.value_or(tls::KeyPair()))),
      services_(api_, kube::Services(), Ours(options_.watch_namespaces), Report(changed)),
      budgets_(api_, kube::PodDisruptionBudgets(), Ours(options_.watch_namespaces),
               Report(changed)),
      policies_(api_, kube::NetworkPolicies(), Ours(options_.watch_namespaces), Report(changed)),
      pod_groups_(options_.pod_groups ? std::make_unique<runtime::Informer>(
                                            api_, *options_.pod_groups,
                                            Ours(options_.watch_namespaces), Report(changed))
                                      : nullptr) {}

std::vector<runtime::Informer*> ChildObjects::informers() {
  std::vector<runtime::Informer*> all = {&services_, &budgets_};
  if (options_.network_policy.enabled) all.push_back(&policies_);
  if (pod_groups_ != nullptr) all.push_back(pod_groups_.get());
  return all;
}

void ChildObjects::Start() {
  for (runtime::Informer* informer : informers()) informer->Start();
}

void ChildObjects::Stop() {
  for (runtime::Informer* informer : informers()) informer->Stop();
}

ChildObjects::Outcome ChildObjects::Keep(const api::HorovodJob& job, bool grouped) {
  Outcome outcome;
  const auto note = [&](const kube::Result<void>& kept) {
    if (!kept) outcome.problems.push_back(kept.error());
  };
  if (options_.authority) {
    note(KeepSecret(job));
    outcome.look_again = options_.secret_check;
  }
  note(KeepObject(job, kube::Services(), &services_, BuildService(job)));
  note(KeepObject(job, kube::PodDisruptionBudgets(), &budgets_, BuildDisruptionBudget(job)));
  if (options_.network_policy.enabled) {
    note(KeepObject(job, kube::NetworkPolicies(), &policies_,
                    BuildNetworkPolicy(job, options_.network_policy)));
  }
  if (grouped && pod_groups_ != nullptr) note(KeepPodGroup(job));
  return outcome;
}

kube::Result<void> ChildObjects::KeepPodGroup(const api::HorovodJob& job) {
  Json group = BuildPodGroup(job, *options_.pod_groups);
  const auto live = pod_groups_->Get(job.ns, MetaField(group, "name"));
  if (live != nullptr) KeepWhatIsFixed(*live, &group);
  auto kept = KeepObject(job, *options_.pod_groups, pod_groups_.get(), group);
  const bool exists = kept || HasPodGroup(job);
  const sync::MutexLock lock(&mu_);
  if (exists) {
    without_group_.erase(job.uid);
  } else if (IsRefusal(kept.error())) {
    without_group_.insert(job.uid);
  }
  return kept;
}

bool ChildObjects::HasSecret(const api::HorovodJob& job) const {
  const sync::MutexLock lock(&mu_);
  return !options_.authority || secret_seen_.contains(job.uid);
}

bool ChildObjects::PodGroupIsRefused(const api::HorovodJob& job) const {
  const sync::MutexLock lock(&mu_);
  return without_group_.contains(job.uid);
}

bool ChildObjects::HasPodGroup(const api::HorovodJob& job) const {
  if (pod_groups_ == nullptr) return false;
  const auto live = pod_groups_->Get(job.ns, PodGroupName(job.name, job.uid));
  return live != nullptr && IsOwnedBy(*live, job.uid);
}

void ChildObjects::Forget(const std::string& job_uid) {
  const sync::MutexLock lock(&mu_);
  secret_seen_.erase(job_uid);
  without_group_.erase(job_uid);
}

kube::Result<void> ChildObjects::KeepObject(const api::HorovodJob& job,
                                            const kube::Resource& resource,
                                            runtime::Informer* cache, const Json& wanted) {
  const std::string name = MetaField(wanted, "name");
  const auto live = cache->Get(job.ns, name);
  if (live != nullptr && !IsOwnedBy(*live, job.uid)) return NotOurs(resource, name);
  if (live != nullptr && Covers(*live, wanted)) return {};
  // A POST comes first, because it can't overwrite an object of another owner.
  auto written = live == nullptr ? api_->Create(resource, job.ns, wanted) : kube::Result<Json>();
  bool apply = live != nullptr;
  if (!apply && !written && written.error().code == ErrorCode::kAlreadyExists) {
    const auto other = api_->Get(resource, job.ns, name);
    if (other && !IsOwnedBy(*other, job.uid)) return NotOurs(resource, name);
    apply = other.has_value();
  }
  if (apply) {
    written = api_->Patch(
        resource, job.ns, name, wanted,
        {.type = kube::PatchType::kApply, .field_manager = api::kOperatorName, .force = true});
  }
  if (!written) return tl::unexpected(written.error());
  logging::Info("child object written job={} kind={} name={} was={}", job.Key(), resource.kind,
                name, apply ? "wrong" : "missing");
  cache->Observe(*written);
  return {};
}

kube::Result<void> ChildObjects::KeepSecret(const api::HorovodJob& job) {
  const auto now = steady_clock::now();
  {
    const sync::MutexLock lock(&mu_);
    const auto seen = secret_seen_.find(job.uid);
    if (seen != secret_seen_.end() && now - seen->second < options_.secret_check) return {};
  }
  const std::string name = TlsSecretName(job.name);
  const auto secret = api_->Get(kube::Secrets(), job.ns, name);
  if (!secret && secret.error().code != ErrorCode::kNotFound) return tl::unexpected(secret.error());
  if (secret && !IsOwnedBy(*secret, job.uid)) return NotOurs(kube::Secrets(), name);
  const std::string why = secret ? WhyRenew(*secret, job, options_.authority->certificate_pem,
                                            std::chrono::system_clock::now())
                                 : "there is none";
  if (!why.empty()) {
    logging::Info("certificate renewed job={} secret={} why={}", job.Key(), name,
                  logging::Value(why));
    if (auto written = WriteSecret(job, secret ? *secret : Json()); !written) return written;
  }
  const sync::MutexLock lock(&mu_);
  secret_seen_[job.uid] = now;
  return {};
}

// All workers of a job have the same ring key, or none has one, so an existing Secret keeps its
// key. A Secret without a key belongs to a job whose first pods were created without one.
kube::Result<void> ChildObjects::WriteSecret(const api::HorovodJob& job, const Json& found) {
  const bool exists = !found.is_null();
  const std::string ring_key = exists ? SecretValue(found, ring_key::kFileName)
                               : !options_.ring_key.empty()
                                   ? options_.ring_key
                                   : ring_key::Derive(options_.authority->key_pem, job.uid);
  if (!issuer_) return tl::unexpected(kube::Error{.message = issuer_.error()});
  const auto pair = issuer_->Issue({tls::JobName(job.uid)}, std::chrono::system_clock::now(),
                                   kJobCertificateLifetime);
  if (!pair) return tl::unexpected(kube::Error{.message = pair.error()});
  const Json wanted = BuildTlsSecret(job, options_.authority->certificate_pem, *pair, ring_key);
  const auto written = exists
                           ? api_->Patch(kube::Secrets(), job.ns, TlsSecretName(job.name), wanted,
                                         {.type = kube::PatchType::kApply,
                                          .field_manager = api::kOperatorName,
                                          .force = true})
                           : api_->Create(kube::Secrets(), job.ns, wanted);
  if (!written) return tl::unexpected(written.error());
  return {};
}

}  // namespace ringmaster::controllers
