#include "operator/controllers/provisioning_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/logging/log.h"
#include "operator/api/labels.h"
#include "operator/controllers/node_affinity.h"
#include "operator/controllers/pod_builder.h"
#include "operator/controllers/pod_identity.h"
#include "operator/kube/creation_was_refused.h"
#include "operator/kube/resources.h"
#include "operator/runtime/told_objects.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

// A job that trains has no request, so nobody asks what one would be like.
bool HasEnoughNodes(const planner::Snapshot& snapshot) {
  return std::count_if(snapshot.pods.begin(), snapshot.pods.end(),
                       [](const planner::PodFacts& pod) {
                         return pod.scheduled && !pod.leaving() && !pod.ended();
                       }) >= snapshot.job.LeastPods();
}

bool WantsNoPods(const planner::Snapshot& snapshot) {
  return snapshot.job.Suspended() || !snapshot.job.status.completion_time.empty() ||
         snapshot.queue || snapshot.grouped;
}

// It is gone, or another one has its name, which a uid tells apart.
bool IsGone(const kube::Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kConflict;
}

}  // namespace

const std::vector<kube::Resource>& ProvisioningRequestVersions() {
  static const std::vector<kube::Resource> kVersions = {
      kube::ProvisioningRequests(),
      {provisioning::kGroup, "v1beta1", "provisioningrequests", "ProvisioningRequest", true}};
  return kVersions;
}

ProvisioningRequests::ProvisioningRequests(std::shared_ptr<kube::KubeApi> api,
                                           ProvisioningOptions options,
                                           std::vector<std::string> namespaces, PodOptions pod,
                                           const std::function<void(const std::string&)>& changed)
    : api_(std::move(api)), options_(std::move(options)), pod_(std::move(pod)) {
  if (!options_.version) return;
  cache_ = std::make_unique<runtime::Informer>(
      api_, *options_.version,
      runtime::InformerOptions{
          .namespaces = std::move(namespaces),
          .label_selector = fmt::format("{}={}", api::kManagedByLabel, api::kManagedBy),
          .keep = runtime::WithoutManagedFields,
          .index = JobKeyOf},
      [changed](const Json& request, bool) { changed(JobKeyOf(request)); });
}

void ProvisioningRequests::Start() {
  if (cache_ != nullptr) cache_->Start();
}

void ProvisioningRequests::Stop() {
  if (cache_ != nullptr) cache_->Stop();
}

bool ProvisioningRequests::HasAnswer() const {
  if (cache_ == nullptr) return true;
  const auto state = cache_->state();
  return state.synced || !state.error.empty();
}

std::optional<provisioning::Requests> ProvisioningRequests::Look(
    const planner::Snapshot& snapshot) const {
  const api::HorovodJob& job = snapshot.job;
  if (cache_ == nullptr || provisioning::BringsOwnRequest(job)) return std::nullopt;
  provisioning::Requests requests;
  requests.class_name = provisioning::ClassOf(job, options_.class_name);
  requests.problem = provisioning::WrongClass(requests.class_name);
  if (const auto state = cache_->state(); !state.synced) {
    requests.problem =
        fmt::format("ProvisioningRequests of {} can't be read: {}", options_.version->ApiVersion(),
                    state.error.empty() ? "no answer yet" : state.error);
    return requests;
  }
  for (const auto& object : cache_->Indexed(job.ns, job.Key())) {
    if (IsOwnedBy(*object, job.uid)) requests.own.push_back(provisioning::ReadRequest(*object));
  }
  std::stable_sort(requests.own.begin(), requests.own.end(),
                   [](const auto& a, const auto& b) { return a.created < b.created; });
  if (HasEnoughNodes(snapshot) || WantsNoPods(snapshot)) return requests;
  requests.digest = provisioning::DigestOf(provisioning::TemplateOf(PodOf(job)));
  return requests;
}

Json ProvisioningRequests::PodOf(const api::HorovodJob& job) const {
  return BuildPod(job, 0, pod_);
}

bool ProvisioningRequests::Apply(const planner::Snapshot& snapshot,
                                 const planner::Decision& decision, const Reports& reports) {
  const api::HorovodJob& job = snapshot.job;
  if (cache_ == nullptr) return true;
  for (const planner::RequestDrop& request : decision.request_drops) {
    if (const auto dropped = Drop(job, request, snapshot.now); !dropped) {
      logging::Warn("provisioning request not deleted job={} request={} error={}", job.Key(),
                    request.name, logging::Value(dropped.error().message));
      return false;
    }
  }
  if (!decision.request) {
    reports.backoff->Worked(job, Needed::kRequests);
    return true;
  }
  if (reports.backoff->Waits(job, Needed::kRequests)) return true;
  const auto made = Make(snapshot, *decision.request);
  if (!made) {
    logging::Warn("provisioning request not made job={} error={}", job.Key(),
                  logging::Value(made.error().message));
    reports.backoff->FailedWithEvent(job, Needed::kRequests, made.error(),
                                     "FailedProvisioningRequest");
    return reports.backoff->Waits(job, Needed::kRequests);
  }
  reports.backoff->Worked(job, Needed::kRequests);
  if (made->empty()) return true;
  reports.events->EmitEvent(
      job, {false, "NodesRequested",
            fmt::format("ProvisioningRequest {} asks for nodes for {} pods ({})", *made,
                        decision.request->count, snapshot.requests->class_name),
            ""});
  return true;
}

// The autoscaler looks for the template when it sees the request, so the template comes first.
kube::Result<std::string> ProvisioningRequests::Make(const planner::Snapshot& snapshot,
                                                     const provisioning::Wanted& wanted) {
  const api::HorovodJob& job = snapshot.job;
  Json pod = PodOf(job);
  PutInDomain(pod, job.spec.run_policy.scheduling_policy.topology, wanted.domain);
  const provisioning::Objects objects = provisioning::BuildObjects(
      job, *snapshot.requests, wanted, pod, options_.version->ApiVersion(),
      static_cast<int>(options_.within.count()));
  const std::string name = MetaField(objects.request, "name");
  // The name tells what is asked for, so a template that is there already is the right one.
  const auto held = api_->Create(kube::PodTemplates(), job.ns, objects.pod_template);
  if (!held && held.error().code != ErrorCode::kAlreadyExists) return tl::unexpected(held.error());
  const auto made = api_->Create(*options_.version, job.ns, objects.request);
  // The call before has made it, and the cache will have it soon.
  if (!made && made.error().code == ErrorCode::kAlreadyExists) return std::string();
  if (!made) {
    // Nothing would remind us of the template. But if no answer came the request may exist, and an
    // autoscaler fails a request without its template.
    if (held && kube::CreationWasRefused(made.error()))
      (void)api_->Delete(kube::PodTemplates(), job.ns, name, {});
    return tl::unexpected(made.error());
  }
  cache_->Observe(*made);
  logging::Info("provisioning request made job={} request={} class={} pods={} attempt={}",
                job.Key(), name, snapshot.requests->class_name, wanted.count, wanted.attempt);
  return name;
}

// The request goes last: while it is there, the template is not forgotten.
kube::Result<void> ProvisioningRequests::Drop(const api::HorovodJob& job,
                                              const planner::RequestDrop& request, api::Time now) {
  const auto template_gone = api_->Delete(kube::PodTemplates(), job.ns, request.name, {});
  if (!template_gone && !IsGone(template_gone.error())) return template_gone;
  const auto gone = api_->Delete(*options_.version, job.ns, request.name, {.uid = request.uid});
  if (!gone && !IsGone(gone.error())) return gone;
  logging::Info("provisioning request deleted job={} request={}", job.Key(), request.name);
  // The watch may be late, but no pod may start on capacity that was given up.
  cache_->ObserveDeletion(runtime::Stub(job.ns, request.name, request.uid), api::FormatTime(now));
  return {};
}

}  // namespace ringmaster::controllers
