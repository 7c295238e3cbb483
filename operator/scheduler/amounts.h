// How much of each resource a pod asks for and a node has. Pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::scheduler {

using Json = nlohmann::json;
using Amounts = std::map<std::string, double>;  // by resource, "pods" included

constexpr double kRounding = 1e-9;  // absolute error of sums that were built in different orders

// The resources that a pod requests, as Kubernetes counts them ("Effective Pod requests and limits"
// in its documentation; KEP-753 and KEP-2837): the sum of its containers and native sidecars, or
// the largest need of an init container with the sidecars before it, if that is more.
// spec.resources of the whole pod takes precedence over both, and the overhead of the runtime class
// is added. Claimed resources (DRA) and pods that are being resized are not considered.
Amounts RequestsOf(const Json& pod);

// Parses {"cpu": "500m", ...} into numbers of base units: none is below 0 or more than any machine
// has.
Amounts AmountsIn(const Json& quantities);

void Add(Amounts& to, const Amounts& amounts, double sign = 1);
// Subtracts amounts. The result is exactly zero if everything that was added is taken off again, in
// whatever order.
void TakeOff(Amounts& from, const Amounts& amounts);

// How much is free. Negative if more is used than is allocatable.
double FreeOf(const Amounts& allocatable, const Amounts& used, const std::string& resource);
// How many pods with these requests fit into what is allocatable and not used.
int CountFits(const Amounts& allocatable, const Amounts& used, const Amounts& requests);

}  // namespace ringmaster::scheduler
