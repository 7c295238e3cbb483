#include "operator/kubelet/container_probes.h"

#include <algorithm>
#include <utility>

#include "common/fields/fields.h"

namespace ringmaster::kubelet {

using std::chrono::seconds;

ContainerProbes::ContainerProbes(kube::Json startup, kube::Json readiness) {
  startup_.spec = std::move(startup);
  readiness_.spec = std::move(readiness);
}

void ContainerProbes::Begin(TimePoint now) {
  for (Probe* probe : {&startup_, &readiness_}) {
    probe->in_flight = false;
    probe->successes = probe->failures = 0;
    if (probe->spec.is_object())
      probe->due = now + seconds(fields::Integer(probe->spec, "initialDelaySeconds", 0));
  }
  started_ = !startup_.spec.is_object();
  ready_ = started_ && !readiness_.spec.is_object();
}

std::optional<ContainerProbes::TimePoint> ContainerProbes::due() const {
  const Probe& probe = started_ ? readiness_ : startup_;
  if (!probe.spec.is_object() || probe.in_flight) return std::nullopt;
  return probe.due;
}

const kube::Json& ContainerProbes::Run(TimePoint now) {
  Probe& probe = Of(current());
  probe.due = now + std::max(seconds(1), seconds(fields::Integer(probe.spec, "periodSeconds", 10)));
  return probe.spec;
}

bool ContainerProbes::Count(Kind kind, bool passed) {
  Probe& probe = Of(kind);
  probe.successes = passed ? probe.successes + 1 : 0;
  probe.failures = passed ? 0 : probe.failures + 1;
  if (passed && probe.successes >= fields::Integer(probe.spec, "successThreshold", 1)) {
    ready_ = kind == Kind::kReadiness || !readiness_.spec.is_object();
    started_ = started_ || kind == Kind::kStartup;
  }
  if (passed || probe.failures < fields::Integer(probe.spec, "failureThreshold", 3)) return true;
  if (kind == Kind::kStartup) return false;  // as a kubelet
  ready_ = false;
  return true;
}

}  // namespace ringmaster::kubelet
