// How much of each resource a pod asks for and a node has. Pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace ringmaster::scheduler {

using Json = nlohmann::json;
using Amounts = std::map<std::string, double>;  // by resource, "pods" included

constexpr double kRounding = 1e-9;  // of amounts that were summed up in another order

// What a pod asks for, as Kubernetes counts it ("Effective Pod requests and limits" in its
// documentation; KEP-753 and KEP-2837): its containers and native sidecars together, or the init
// container that with the sidecars before it needs most; what spec.resources says of the whole pod
// comes before both; the overhead of its runtime is added. Of resources that are claimed (DRA) and
// of a pod that is being resized nothing is known here.
Amounts RequestsOf(const Json& pod);

// {"cpu": "500m", ...} as numbers of the base units.
Amounts AmountsIn(const Json& quantities);

void Add(Amounts& to, const Amounts& amounts, double sign = 1);
// Of amounts that were summed up and taken off again nothing is left, whatever the order was.
void TakeOff(Amounts& from, const Amounts& amounts);

// Below 0: more is used than there is.
double FreeOf(const Amounts& allocatable, const Amounts& used, const std::string& resource);
// How many pods that ask for this fit into what is allocatable and not used.
int CountFits(const Amounts& allocatable, const Amounts& used, const Amounts& requests);

}  // namespace ringmaster::scheduler
