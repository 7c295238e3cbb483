#include "operator/controllers/job_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <utility>

#include "operator/api/labels.h"
#include "operator/api/object_key.h"
#include "operator/controllers/metrics.h"
#include "operator/controllers/pod_facts.h"
#include "operator/controllers/pod_identity.h"
#include "operator/controllers/pod_record.h"
#include "operator/controllers/slim_objects.h"

namespace ringmaster::controllers {
namespace {

using kube::ErrorCode;
using kube::Json;
using runtime::MetaField;

// How often the caches are checked during the first lists.
constexpr std::chrono::milliseconds kLookAtCaches{10};
// How long a stopping operator waits for the last events to be written.
constexpr std::chrono::milliseconds kLastEvents{2000};

double ThreadCpuSeconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

JobController::JobController(std::shared_ptr<kube::KubeApi> api, SidecarRegistry* registry,
                             QuorumRecordStore* records, JobControllerOptions options)
    : api_(std::move(api)),
      registry_(registry),
      records_(records),
      options_(std::move(options)),
      queue_(options_.queue, options_.clock),
      admission_(options_.gang_admission ? std::make_unique<AdmissionLoop>(
                                               [this](const std::string& job) { queue_.Add(job); })
                                         : nullptr),
      jobs_(api_, kube::HorovodJobs(),
            {.namespaces = options_.watch_namespaces, .keep = runtime::WithoutManagedFields},
            [this](const Json& object, bool) { queue_.Add(api::KeyOf(object)); }),
      pods_(api_, kube::Pods(), PodCacheOptions(),
            [this](const Json& object, bool deleted) { OnPod(object, deleted); }),
      nodes_(
          api_, {options_.disruption_taints, options_.trust_node_deletion},
          [this](const std::string& node) { OnNode(node); },
          [this](const Json& node, bool deleted) {
            if (admission_ != nullptr) admission_->OnNode(node, deleted);
          }),
      child_objects_(MakeChildObjects()),
      job_queue_(api_, {options_.kueue, options_.watch_namespaces, options_.pod},
                 [this](const std::string& job) { queue_.Add(job); }),
      requests_(api_, options_.provisioning, options_.watch_namespaces, options_.pod,
                [this](const std::string& job) { queue_.Add(job); }),
      reconciler_(MakeReconciler()) {
  if (admission_ != nullptr) admission_->SetNodeCallRules(options_.node_calls);
}

// One watch serves all. Gang admission counts free capacity, so it must see every pod of the
// cluster.
runtime::InformerOptions JobController::PodCacheOptions() const {
  runtime::InformerOptions options = InformerOptionsForPods();
  if (!options_.gang_admission) {
    options.namespaces = options_.watch_namespaces;
    options.label_selector = api::kWorkerSelector;
    return options;
  }
  const std::set<std::string> watched(options_.watch_namespaces.begin(),
                                      options_.watch_namespaces.end());
  options.stores = [watched](const Json& pod) {
    if (!watched.empty() && watched.count(MetaField(pod, "namespace")) == 0) return false;
    return IsWorkerPod(pod);
  };
  return options;
}

void JobController::OnPod(const Json& pod, bool deleted) {
  if (admission_ != nullptr) admission_->OnPod(pod, deleted);
  const bool ours = IsWorkerPod(pod);
  if (ours && !deleted) {
    jobs_by_node_.Set(pod);
  } else {
    jobs_by_node_.Remove(pod);
  }
  if (!ours) return;
  // A leaving pod has a deadline; a new one has none.
  if (IsLeaving(pod)) {
    queue_.AddFirst(JobKeyOf(pod));
  } else {
    queue_.Add(JobKeyOf(pod));
  }
}

std::unique_ptr<ChildObjects> JobController::MakeChildObjects() {
  if (!options_.child_objects) return nullptr;
  ChildObjectOptions options = *options_.child_objects;
  options.watch_namespaces = options_.watch_namespaces;
  return std::make_unique<ChildObjects>(api_, std::move(options),
                                        [this](const std::string& key) { queue_.Add(key); });
}

JobReconciler JobController::MakeReconciler() {
  return JobReconciler(
      api_,
      {.registry = registry_,
       .records = records_,
       .queue = &queue_,
       .jobs = &jobs_,
       .pods = &pods_,
       .nodes = &nodes_,
       .admission = admission_.get(),
       .child_objects = child_objects_.get(),
       .job_queue = &job_queue_,
       .requests = &requests_},
      {.instance = options_.instance,
       .creation_backoff = options_.queue,
       .observer = {options_.disruption_taints, options_.preparation_patience, options_.clock},
       .nodes_within =
           options_.node_calls.calls ? std::optional(options_.nodes_within) : std::nullopt,
       .pod_groups = options_.child_objects && options_.child_objects->pod_groups,
       .pods = {options_.pod, options_.proof_finalizer, options_.calls_at_once, options_.clock},
       .most_events_waiting = options_.most_events_waiting,
       .clock = options_.clock,
       .metrics = options_.metrics});
}

JobController::~JobController() { Stop(); }

void JobController::Listen() {
  registry_->SetChangeHandler([this](const std::string& key, std::chrono::milliseconds delay) {
    queue_.AddAfter(key, delay);
  });
  registry_->SetPodLookup(
      [this](const job::Registration& registration) { return IsPodOfJob(registration); });
  registry_->SetJobLookup([this](const std::string& text, const std::string& uid) {
    const api::ObjectKey key = api::ParseKey(text);
    const auto job = jobs_.Get(key.ns, key.name);
    return job != nullptr && MetaField(*job, "uid") == uid;
  });
  records_->SetJobWriteHandler([this](const Json& job) { jobs_.Observe(job); });
}

void JobController::Take(const kube::Resource& resource, kube::WatchEvent event) {
  if (resource == kube::HorovodJobs()) jobs_.Take(std::move(event));
  if (resource == kube::Pods()) pods_.Take(std::move(event));
}

kube::Result<void> JobController::Start(std::stop_token stop) {
  Listen();
  jobs_.Start();
  pods_.Start();
  if (child_objects_ != nullptr) child_objects_->Start();
  // Without Kueue there is nothing to list, and it may be installed later. So we wait only for an
  // answer, which may be a refusal, so that jobs in queues are not told that their state is
  // unknown.
  job_queue_.Start();
  requests_.Start();
  if (admission_ != nullptr) nodes_.Start();
  if (auto synced = AwaitCaches(std::move(stop)); !synced) {
    Stop();
    return synced;
  }
  if (admission_ != nullptr) {
    std::set<std::string> jobs;
    for (const runtime::ObjectPtr& job : jobs_.All()) jobs.insert(api::KeyOf(*job));
    admission_->Expect(std::move(jobs));
    admission_->Start();
  } else {
    nodes_.Start();
  }
  for (int i = 0; i < options_.workers; ++i) {
    threads_.emplace_back([this](std::stop_token token) {
      while (LookAtNext(token)) {
      }
    });
  }
  return {};
}

kube::Result<void> JobController::AwaitCaches(std::stop_token stop) {
  const auto fail = [](std::string why) {
    return tl::unexpected(kube::Error{.code = ErrorCode::kUnavailable, .message = std::move(why)});
  };
  const auto end = std::chrono::steady_clock::now() + options_.sync_timeout;
  for (;;) {
    const auto caches = state().caches;
    const auto missing =
        std::find_if(caches.begin(), caches.end(), [](const auto& cache) { return !cache.synced; });
    const bool all = missing == caches.end();
    if (all && job_queue_.HasAnswer() && requests_.HasAnswer()) return {};
    if (stop.stop_requested()) return fail("stopped before the caches were there");
    if (std::chrono::steady_clock::now() >= end) {
      if (all) return {};
      return fail(fmt::format("{} could not be listed within {} s: {}", missing->resource,
                              options_.sync_timeout.count() / 1000, missing->error));
    }
    std::this_thread::sleep_for(kLookAtCaches);
  }
}

// The caches that must be synced before anything is decided.
std::vector<const runtime::Informer*> JobController::Caches() const {
  std::vector<const runtime::Informer*> caches = {&jobs_, &pods_};
  if (admission_ != nullptr) caches.push_back(nodes_.cache());
  if (child_objects_ != nullptr) {
    for (const runtime::Informer* cache : child_objects_->informers()) caches.push_back(cache);
  }
  return caches;
}

JobController::State JobController::state() const {
  State state{.caches = {}, .queue = queue_.stats()};
  for (const runtime::Informer* cache : Caches()) state.caches.push_back(cache->state());
  return state;
}

void JobController::Stop() {
  registry_->SetChangeHandler(nullptr);
  registry_->SetPodLookup(nullptr);
  registry_->SetJobLookup(nullptr);
  records_->SetJobWriteHandler(nullptr);
  for (std::jthread& thread : threads_) thread.request_stop();
  const bool worked = !threads_.empty();
  threads_.clear();  // joins the threads
  if (worked) (void)reconciler_.FlushEvents(kLastEvents);
  jobs_.Stop();
  pods_.Stop();
  if (child_objects_ != nullptr) child_objects_->Stop();
  job_queue_.Stop();
  requests_.Stop();
  nodes_.Stop();
  if (admission_ != nullptr) admission_->Stop();
}

bool JobController::LookAtNext(std::stop_token stop) {
  const auto key = queue_.Take(std::move(stop));
  if (!key) return false;
  const auto began = std::chrono::steady_clock::now();
  const double cpu_before = ThreadCpuSeconds();
  const bool ok = reconciler_.Reconcile(*key);
  if (ok) {
    queue_.Forget(*key);
  } else {
    queue_.AddBackoff(*key);
  }
  queue_.Done(*key);
  if (options_.metrics == nullptr) return true;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  options_.metrics->Reconciled(ok, took.count(), ThreadCpuSeconds() - cpu_before);
  return true;
}

bool JobController::IsPodOfJob(const job::Registration& registration) const {
  const auto pod = pods_.Get(registration.job_namespace, registration.pod_name);
  if (pod == nullptr) return false;
  const PodRecord& record = RecordOf(pod);
  return record.facts.uid == registration.pod_uid && IsOwnedBy(record, registration.job_uid);
}

void JobController::OnNode(const std::string& name) {
  for (const std::string& key : jobs_by_node_.On(name)) queue_.Add(key);
}

}  // namespace ringmaster::controllers
