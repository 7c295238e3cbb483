#include "operator/scheduler/amounts.h"

#include <algorithm>
#include <cmath>

#include "common/fields/fields.h"
#include "operator/scheduler/quantity.h"

namespace ringmaster::scheduler {
namespace {

// The most of a resource that is counted. Somebody's pod may ask for more than any machine has, and
// sums of that would lose what others ask for: up to here doubles add and subtract exactly enough.
double MostOf(const std::string& resource) {
  return resource == "cpu" ? 1e4 : 1e14;  // parts of a CPU count, of others only whole ones
}

void Raise(Amounts& to, const Amounts& amounts) {
  for (const auto& [resource, n] : amounts) to[resource] = std::max(to[resource], n);
}

// The requests of a container, or of a pod's spec.
Amounts OwnRequests(const Json& object) {
  return AmountsIn(fields::ObjectAt(object, "/resources/requests"));
}

// Resources that spec.resources of a pod may set: of all others the containers' requests count.
bool IsOfPods(const std::string& resource) {
  return resource == "cpu" || resource == "memory" || resource.rfind("hugepages-", 0) == 0;
}

}  // namespace

Amounts AmountsIn(const Json& quantities) {
  Amounts amounts;
  for (const auto& [resource, amount] : quantities.items()) {
    amounts[resource] = std::min(ParseQuantity(amount), MostOf(resource));
  }
  return amounts;
}

Amounts RequestsOf(const Json& pod) {
  const Json& spec = fields::Object(pod, "spec");
  Amounts total, sidecars, init;
  for (const Json& container : fields::List(spec, "containers")) Add(total, OwnRequests(container));
  for (const Json& container : fields::List(spec, "initContainers")) {
    const Amounts own = OwnRequests(container);
    if (container.value("restartPolicy", "") == "Always") {
      Add(sidecars, own);
      Add(total, own);
    } else {  // an init container: it runs beside the sidecars before it and ends before what
              // follows
      Amounts then = sidecars;
      Add(then, own);
      Raise(init, then);
    }
  }
  Raise(total, init);
  for (const auto& [resource, n] : OwnRequests(spec)) {
    if (IsOfPods(resource)) total[resource] = n;
  }
  Add(total, AmountsIn(fields::Object(spec, "overhead")));
  total["pods"] = 1;
  return total;
}

void Add(Amounts& to, const Amounts& amounts, double sign) {
  for (const auto& [resource, n] : amounts) to[resource] += sign * n;
}

void TakeOff(Amounts& from, const Amounts& amounts) {
  Add(from, amounts, -1);
  std::erase_if(from, [](const auto& amount) { return std::abs(amount.second) < kRounding; });
}

double FreeOf(const Amounts& allocatable, const Amounts& used, const std::string& resource) {
  const auto have = allocatable.find(resource), taken = used.find(resource);
  return (have == allocatable.end() ? 0 : have->second) - (taken == used.end() ? 0 : taken->second);
}

int CountFits(const Amounts& allocatable, const Amounts& used, const Amounts& requests) {
  double fits = 0;
  bool bounded = false;
  for (const auto& [resource, n] : requests) {
    if (n <= 0) continue;
    const double some = std::floor((FreeOf(allocatable, used, resource) + kRounding) / n);
    fits = bounded ? std::min(fits, some) : some;
    bounded = true;
  }
  constexpr double kMany = 1e6;
  return static_cast<int>(std::clamp(bounded ? fits : kMany, 0.0, kMany));
}

}  // namespace ringmaster::scheduler
