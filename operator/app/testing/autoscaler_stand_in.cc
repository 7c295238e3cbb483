#include "operator/app/testing/autoscaler_stand_in.h"

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/kube/resources.h"
#include "operator/provisioning/request.h"

namespace ringmaster::app {

using kube::Json;
using provisioning::RequestStage;

std::vector<Json> AutoscalerStandIn::Requests() const {
  const auto all = api_->ListAll(kube::ProvisioningRequests(), "default", {});
  return all ? all->items : std::vector<Json>();
}

std::vector<Json> AutoscalerStandIn::Templates() const {
  const auto all = api_->ListAll(kube::PodTemplates(), "default", {});
  return all ? all->items : std::vector<Json>();
}

void AutoscalerStandIn::Step() {
  if (booked_ > 0) {
    added_ += booked_;
    options_.add(booked_);
    booked_ = 0;
  }
  for (const Json& request : Requests()) {
    if (fields::TextAt(request, "/spec/provisioningClassName") == options_.class_name) {
      Decide(request);
    }
  }
}

void AutoscalerStandIn::Decide(const Json& request) {
  const auto stage = provisioning::ReadRequest(request).stage;
  if (stage == RequestStage::kAsked) {
    return Set(request, provisioning::kAccepted, "Accepted", "the request was accepted");
  }
  if (stage != RequestStage::kAccepted) return;
  const int wanted = Wanted(request);
  if (added_ + booked_ + wanted > options_.most) {
    return Set(request, provisioning::kFailed, "CapacityIsNotFound", "the pool has no more nodes");
  }
  booked_ += wanted;
  Set(request, provisioning::kProvisioned, "CapacityIsProvisioned", "capacity is provisioned");
}

// How much of the resource the pods of the request take.
int AutoscalerStandIn::Wanted(const Json& request) {
  int wanted = 0;
  for (const Json& set : fields::ListAt(request, "/spec/podSets")) {
    const std::string name = fields::TextAt(set, "/podTemplateRef/name");
    const auto found = api_->Get(kube::PodTemplates(), "default", name);
    const Json& containers =
        found ? fields::ListAt(*found, "/template/spec/containers") : fields::List(Json(), "");
    const bool takes = std::any_of(containers.begin(), containers.end(), [&](const Json& one) {
      return fields::ObjectAt(one, "/resources/limits").contains(options_.resource);
    });
    if (!takes) violations_.push_back(name + ": no such template, or its pods take nothing");
    wanted += takes ? static_cast<int>(fields::Integer(set, "count")) : 0;
  }
  return wanted;
}

void AutoscalerStandIn::Set(const Json& request, const std::string& type, const std::string& reason,
                            const std::string& message) {
  Json conditions = fields::ListAt(request, "/status/conditions");
  conditions.push_back({{"type", type},
                        {"status", "True"},
                        {"reason", reason},
                        {"message", message},
                        {"lastTransitionTime", api::FormatTime(std::chrono::system_clock::now())}});
  (void)api_->Patch(kube::ProvisioningRequests(), "default",
                    fields::TextAt(request, "/metadata/name"),
                    {{"status", {{"conditions", conditions}}}}, {.subresource = "status"});
}

}  // namespace ringmaster::app
