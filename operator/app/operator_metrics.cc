#include "operator/app/operator_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <map>

#include "operator/api/labels.h"
#include "operator/api/managed_by.h"
#include "operator/planner/planner.h"

namespace ringmaster::app {
namespace {

using kube::Json;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using runtime::MetaField;
using Labels = std::vector<ClientMetric::Label>;

// Covers a get from the API server's cache as well as a call that ends by its deadline.
const prometheus::Histogram::BucketBoundaries& CallBuckets() {
  static const prometheus::Histogram::BucketBoundaries kBuckets = {
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
  return kBuckets;
}

// Families by name. They are created when first needed, because a family without series means
// nothing.
class Builder {
 public:
  void Gauge(const char* name, const char* help, Labels labels, double value) {
    Add(name, help, MetricType::Gauge, std::move(labels)).gauge.value = value;
  }
  void Counter(const char* name, const char* help, Labels labels, double value) {
    Add(name, help, MetricType::Counter, std::move(labels)).counter.value = value;
  }
  std::vector<MetricFamily> Take() {
    std::vector<MetricFamily> families;
    for (auto& [name, family] : families_) families.push_back(std::move(family));
    return families;
  }

 private:
  ClientMetric& Add(const char* name, const char* help, MetricType type, Labels labels) {
    MetricFamily& family = families_[name];
    if (family.metric.empty()) {
      family.name = name;
      family.help = help;
      family.type = type;
    }
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }

  std::map<std::string, MetricFamily> families_;
};

std::string JobOf(const Json& pod) {
  const auto labels = pod.value("/metadata/labels"_json_pointer, Json::object());
  const auto at = labels.find(api::kJobNameLabel);
  return at != labels.end() && at->is_string() ? at->get<std::string>() : "";
}

std::string PhaseOf(const Json& pod) {
  const std::string phase = pod.value("/status/phase"_json_pointer, "Pending");
  const bool ended = phase == "Succeeded" || phase == "Failed";
  return !ended && !MetaField(pod, "deletionTimestamp").empty() ? "Terminating" : phase;
}

Labels With(Labels labels, const char* name, const std::string& value) {
  labels.push_back({name, value});
  return labels;
}

// `job` was parsed before: even an invalid job has a state.
void AddStatus(const Labels& of_job, const api::Status& status, Builder* out) {
  out->Gauge("ringmaster_job_state", "1 for the state that the job is in",
             With(of_job, "state", status.state.empty() ? "New" : status.state), 1);
  out->Gauge("ringmaster_job_epoch", "Epoch of the newest view", of_job,
             static_cast<double>(status.epoch));
  out->Gauge("ringmaster_job_world_size", "Ranks in the newest view", of_job, status.world_size);
  out->Counter("ringmaster_job_steps_lost_total", "Steps lost in all rebuilds", of_job,
               static_cast<double>(status.steps_lost));
  out->Counter("ringmaster_job_restarts_from_checkpoint_total",
               "Times that nobody held the state, so that the job began again", of_job,
               status.restarts_from_checkpoint);
  out->Counter("ringmaster_job_worker_restarts_total", "Workers restarted in place", of_job,
               status.worker_restarts);
  out->Counter("ringmaster_job_pods_replaced_total", "Pods that another took the place of", of_job,
               status.pods_replaced);
  out->Counter("ringmaster_job_faults_total", "Faults of the application", of_job, status.faults);
  if (status.last_rebuild) {
    out->Gauge("ringmaster_job_last_rebuild_seconds", "Duration of the last rebuild", of_job,
               status.last_rebuild->seconds);
  }
}

void AddJobs(const OperatorSample& sample, Builder* out) {
  std::map<std::string, int> states;
  for (const runtime::ObjectPtr& object : sample.jobs) {
    if (!api::ForeignManagerOf(*object).empty()) continue;  // its state is not ours to tell
    const Labels of_job = {{"namespace", MetaField(*object, "namespace")},
                           {"job_name", MetaField(*object, "name")}};
    const api::Status status = api::StatusFromJson(object->value("status", Json::object()));
    ++states[status.state.empty() ? "New" : status.state];
    AddStatus(of_job, status, out);
    const auto job = api::ParseHorovodJob(*object, api::UnknownFields::kIgnore);
    if (!job) continue;
    out->Gauge("ringmaster_job_pods_wanted", "Pods that the job should have", of_job,
               job->WantedPods());
    out->Gauge(
        "ringmaster_job_min_pods", "Pods below which the job stands", of_job,
        job->spec.worker.replicas == 0 ? job->spec.elastic_policy.min_replicas : job->LeastPods());
  }
  for (const auto& [state, count] : states) {
    out->Gauge("ringmaster_operator_jobs", "HorovodJobs by state", {{"state", state}}, count);
  }
}

void AddPods(const OperatorSample& sample, Builder* out) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, int>> pods;
  // A phase without pods is reported as 0, so that a query for failed pods gets an answer.
  for (const runtime::ObjectPtr& object : sample.jobs) {
    if (!api::ForeignManagerOf(*object).empty()) continue;
    pods[{MetaField(*object, "namespace"), MetaField(*object, "name")}] = {
        {"Pending", 0}, {"Running", 0}, {"Succeeded", 0}, {"Failed", 0}, {"Terminating", 0}};
  }
  for (const runtime::ObjectPtr& pod : sample.pods) {
    const runtime::ObjectPtr object = pod.WithoutTree();  // there may be many, and trees are large
    const auto of_job = pods.find({MetaField(*object, "namespace"), JobOf(*object)});
    if (of_job != pods.end()) ++of_job->second[PhaseOf(*object)];
  }
  for (const auto& [job, phases] : pods) {
    for (const auto& [phase, count] : phases) {
      out->Gauge("ringmaster_job_pods", "Pods of the job by phase",
                 {{"namespace", job.first}, {"job_name", job.second}, {"phase", phase}}, count);
    }
  }
}

void AddController(const OperatorSample& sample, Builder* out) {
  for (const auto& cache : sample.controller.caches) {
    out->Gauge("ringmaster_operator_cache_synced", "1: the first list has succeeded",
               {{"resource", cache.resource}}, cache.synced ? 1 : 0);
    out->Counter("ringmaster_operator_watch_failures_total",
                 "Lists and watches that ended with an error", {{"resource", cache.resource}},
                 static_cast<double>(cache.failures));
  }
  const runtime::WorkQueue::Stats& queue = sample.controller.queue;
  out->Gauge("ringmaster_operator_queue_depth", "Jobs that wait or are being looked at", {},
             static_cast<double>(queue.depth));
  out->Counter("ringmaster_operator_queue_adds_total", "Times that a job was queued", {},
               static_cast<double>(queue.adds));
  out->Counter("ringmaster_operator_queue_retries_total", "Times that a job was queued again", {},
               static_cast<double>(queue.retries));
  out->Gauge("ringmaster_operator_queue_longest_running_seconds",
             "How long the longest reconcile that runs has been running", {},
             queue.longest_running.count());
}

}  // namespace

std::vector<MetricFamily> SampleFamilies(const OperatorSample& sample) {
  Builder out;
  out.Gauge("ringmaster_operator_leader", "1: this replica runs the controllers", {},
            sample.leading ? 1 : 0);
  out.Gauge("ringmaster_operator_sidecars", "Sidecars that are connected", {},
            static_cast<double>(sample.sidecars));
  AddController(sample, &out);
  AddJobs(sample, &out);
  AddPods(sample, &out);
  return out.Take();
}

struct OperatorMetrics::Families {
  explicit Families(prometheus::Registry* registry)
      : calls(prometheus::BuildHistogram()
                  .Name("ringmaster_operator_api_request_seconds")
                  .Help("Duration of calls of the API server; code 0: no answer")
                  .Register(*registry)),
        throttled(prometheus::BuildCounter()
                      .Name("ringmaster_operator_api_throttled_seconds_total")
                      .Help("Waited because of the client's own rate limit")
                      .Register(*registry)
                      .Add({})) {}

  prometheus::Family<prometheus::Histogram>& calls;
  prometheus::Counter& throttled;
};

OperatorMetrics::OperatorMetrics(const std::string& version)
    : families_(std::make_unique<Families>(&registry_)), controllers_(&registry_) {
  prometheus::BuildGauge()
      .Name("ringmaster_operator_build_info")
      .Help("1, with the version")
      .Register(registry_)
      .Add({{"version", version}})
      .Set(1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  prometheus::BuildGauge()
      .Name("ringmaster_operator_start_time_seconds")
      .Help("When the process started, Unix time")
      .Register(registry_)
      .Add({})
      .Set(std::chrono::duration<double>(now).count());
}
OperatorMetrics::~OperatorMetrics() = default;

void OperatorMetrics::ObserveCall(const kube::CallReport& report) {
  std::string resource = report.resource.plural;
  if (!report.subresource.empty()) resource += "/" + std::string(report.subresource);
  families_->calls
      .Add({{"verb", std::string(report.verb)},
            {"resource", resource},
            {"code", std::to_string(report.code)}},
           CallBuckets())
      .Observe(report.seconds.count());
  if (report.throttled.count() > 0) families_->throttled.Increment(report.throttled.count());
}

std::string OperatorMetrics::Text(const OperatorSample& sample) {
  controllers_.Settle();
  std::vector<MetricFamily> families = registry_.Collect();
  // A family without series is omitted.
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  for (MetricFamily& family : SampleFamilies(sample)) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace ringmaster::app
