// meta.k8s.io/v1 Tables, as `kubectl get` asks for. Pure.
#pragma once

#include <ctime>
#include <vector>

#include "operator/local/store/schema.h"

namespace ringmaster::local {

Json MakeTable(const Resource& resource, const std::vector<Json>& objects, const CrdSchema& crd,
               std::time_t now);

// "15s", "3m20s", "4h10m", "12d": as kubectl says an age.
std::string AgeText(std::time_t seconds);

}  // namespace ringmaster::local
