// The text of the operator's /metrics: what was counted, and what caches, queue and registry
// contain at the moment of the scrape. docs/metrics.md names the series.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <vector>

#include "operator/controllers/job_controller.h"
#include "operator/controllers/metrics.h"
#include "operator/kube/call_observer.h"

namespace ringmaster::app {

// State that can be read at any time; a replica that doesn't lead has no controller.
struct OperatorSample {
  bool leading = false;
  std::vector<runtime::ObjectPtr> jobs, pods;
  controllers::JobController::State controller;
  std::size_t sidecars = 0;
};

// The metric families of a sample. Pure.
std::vector<prometheus::MetricFamily> SampleFamilies(const OperatorSample& sample);

class OperatorMetrics {
 public:
  explicit OperatorMetrics(const std::string& version);
  ~OperatorMetrics();

  controllers::Metrics* controllers() { return &controllers_; }
  // For ClientConfig::on_call of every client.
  void ObserveCall(const kube::CallReport& report);
  // Returns the metrics in Prometheus' text format.
  std::string Text(const OperatorSample& sample);

 private:
  struct Families;
  prometheus::Registry registry_;
  const std::unique_ptr<Families> families_;
  controllers::Metrics controllers_;
};

}  // namespace ringmaster::app
