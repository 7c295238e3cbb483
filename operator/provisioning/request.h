// A ProvisioningRequest is the object by which cluster-autoscaler is asked for nodes for several
// pods at once. This file builds one for a HorovodJob, and reads what an existing one says.
//
// Source: docs/scheduling.md, "Autoscalers". Plain values and pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/horovod_job.h"
#include "operator/api/time.h"

namespace ringmaster::provisioning {

using Json = nlohmann::json;

inline constexpr char kGroup[] = "autoscaling.x-k8s.io";
inline constexpr char kBestEffortAtomic[] = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";

// On pods: which request has booked their capacity, and of which class it is. In a job's template
// the second one chooses the class, and the first one says that somebody else makes the request.
inline constexpr char kConsumeAnnotation[] = "autoscaling.x-k8s.io/consume-provisioning-request";
inline constexpr char kClassAnnotation[] = "autoscaling.x-k8s.io/provisioning-class-name";

// Condition types of a ProvisioningRequest.
inline constexpr char kAccepted[] = "Accepted";
inline constexpr char kProvisioned[] = "Provisioned";
inline constexpr char kFailed[] = "Failed";
inline constexpr char kBookingExpired[] = "BookingExpired";
inline constexpr char kCapacityRevoked[] = "CapacityRevoked";

// How far the request has come. The last three are final.
enum class RequestStage {
  kAsked,
  kAccepted,
  kProvisioned,
  kBookingExpired,
  kCapacityRevoked,
  kFailed
};

// What an existing request says. A missing field, or one of another type, has its default.
struct RequestFacts {
  std::string name;
  std::string uid;
  std::string class_name;
  int count = 0;       // of pods
  std::string digest;  // of the pods' template
  std::string domain;  // value of the topology's label where the pods must run; empty: anywhere
  int attempt = 1;     // counts the requests for the same pods
  api::Time created;
  bool deleting = false;
  RequestStage stage = RequestStage::kAsked;
  std::string why;  // "CapacityIsNotFound: ...", from the condition; for people
  api::Time since;  // when it came to its stage
};
RequestFacts ReadRequest(const Json& request);

// Capacity that is booked for pods of a job.
struct Booking {
  std::string request;
  std::string class_name;
  int pods = 0;  // of the capacity that no pod uses yet
};
// Lets the autoscaler give the booked capacity to the pod.
void Consume(const Booking& booking, Json* pod);

// The requests of a job, and what a new one would be like.
struct Requests {
  std::string problem;            // why they can't be read or made, for people; empty: they can
  std::string class_name;         // of a new one
  std::string digest;             // of the template that its pods have now; empty: not looked at
  std::vector<RequestFacts> own;  // the newest last
};

// A request that is to be made.
struct Wanted {
  int count = 0;
  int attempt = 1;
  std::string domain;
};

// The class that the job's template names, else `otherwise`.
std::string ClassOf(const api::HorovodJob& job, const std::string& otherwise);
// Why the API server would refuse this class, for people; empty: it would not.
std::string WrongClass(const std::string& class_name);
// Somebody else has made a request for this job's pods, as its template says.
bool BringsOwnRequest(const api::HorovodJob& job);

// The template of a pod: what the autoscaler needs to know of it.
Json TemplateOf(const Json& pod);
// Of a template, without its images: a newer operator brings newer ones of ours, and what was asked
// for stays right.
std::string DigestOf(Json pod_template);

struct Objects {
  Json pod_template;  // a PodTemplate
  Json request;       // names it
};
// Both have the same name. It is the same for the same wish at the same time in the job's life, so
// that a repeated call makes no second one. `valid_seconds`: for so long the autoscaler tries.
Objects BuildObjects(const api::HorovodJob& job, const Requests& requests, const Wanted& wanted,
                     const Json& pod, const std::string& api_version, int valid_seconds);

}  // namespace ringmaster::provisioning
