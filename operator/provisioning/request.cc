#include "operator/provisioning/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "common/fields/fields.h"
#include "common/plain_text/plain_text.h"
#include "operator/api/labels.h"
#include "operator/api/scheduling_spec.h"

namespace ringmaster::provisioning {
namespace {

// The parameter of the atomic class that bounds how long the autoscaler tries.
constexpr char kValidUntil[] = "ValidUntilSeconds";
// A condition's message becomes part of a sentence.
constexpr std::size_t kMostWords = 500;
// More than any job has.
constexpr std::int64_t kMostPods = 1'000'000;

const Json* FindCondition(const Json& request, const char* type) {
  for (const Json& condition : fields::ListAt(request, "/status/conditions")) {
    if (fields::Text(condition, "type") == type) return &condition;
  }
  return nullptr;
}

// Anybody may have written it.
std::string Cut(std::string text) {
  return plain_text::CutWithDots(plain_text::WithoutControls(std::move(text)), kMostWords);
}

std::string WordsOf(const Json& condition) {
  const std::string reason = fields::Text(condition, "reason");
  const std::string message = fields::Text(condition, "message");
  return Cut(reason.empty() || message.empty() ? reason + message : reason + ": " + message);
}

void ReadStage(const Json& request, RequestFacts* facts) {
  constexpr std::pair<const char*, RequestStage> kStages[] = {
      {kFailed, RequestStage::kFailed},
      {kCapacityRevoked, RequestStage::kCapacityRevoked},
      {kBookingExpired, RequestStage::kBookingExpired},
      {kProvisioned, RequestStage::kProvisioned},
      {kAccepted, RequestStage::kAccepted}};
  for (const auto& [type, stage] : kStages) {
    const Json* condition = FindCondition(request, type);
    if (condition == nullptr) continue;
    if (fields::Text(*condition, "status") == "True") {
      facts->stage = stage;
      facts->since =
          api::ParseTime(fields::Text(*condition, "lastTransitionTime")).value_or(facts->created);
      if (facts->why.empty()) facts->why = WordsOf(*condition);
      return;
    }
    // "Not yet" says more than that the request was accepted.
    if (stage == RequestStage::kProvisioned || stage == RequestStage::kAccepted)
      facts->why = WordsOf(*condition);
  }
}

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

std::string TemplateAnnotation(const api::HorovodJob& job, const char* name) {
  return fields::Text(fields::ObjectAt(job.spec.worker.pod_template, "/metadata/annotations"),
                      name);
}

Json Metadata(const api::HorovodJob& job, const std::string& name) {
  return {{"name", name},
          {"namespace", job.ns},
          {"labels",
           {{api::kManagedByLabel, api::kManagedBy},
            {api::kJobNameLabel, job.name},
            {api::kJobUidLabel, job.uid}}},
          {"ownerReferences", Json::array({{{"apiVersion", api::kApiVersion},
                                            {"kind", api::kKind},
                                            {"name", job.name},
                                            {"uid", job.uid},
                                            {"controller", true},
                                            {"blockOwnerDeletion", true}}})}};
}

// What distinguishes this wish from the others that the job has had. A pod that names a request
// must not mean a later one, so no name is used twice.
std::string NameOf(const api::HorovodJob& job, const Requests& requests, const Wanted& wanted) {
  const Json wish = {job.status.start_time, job.status.last_given_back_time,
                     job.status.epoch,      requests.class_name,
                     requests.digest,       wanted.domain,
                     wanted.count,          wanted.attempt};
  return fmt::format("{}-{}-{}", job.name, job.uid.substr(0, 8), api::Digest(wish).substr(0, 8));
}

}  // namespace

RequestFacts ReadRequest(const Json& request) {
  RequestFacts facts;
  facts.name = fields::TextAt(request, "/metadata/name");
  facts.uid = fields::TextAt(request, "/metadata/uid");
  facts.class_name = fields::TextAt(request, "/spec/provisioningClassName");
  for (const Json& set : fields::ListAt(request, "/spec/podSets")) {
    // Anybody may have written it: a number that none of ours has stays one, and the sum has room.
    const auto count = std::clamp<std::int64_t>(fields::Integer(set, "count"), 0, kMostPods);
    facts.count = static_cast<int>(std::min<std::int64_t>(facts.count + count, kMostPods));
  }
  const Json& annotations = fields::ObjectAt(request, "/metadata/annotations");
  facts.digest = fields::Text(annotations, api::kTemplateDigestAnnotation);
  facts.domain = fields::Text(annotations, api::kDomainAnnotation);
  const std::string attempt = fields::Text(annotations, api::kAttemptAnnotation);
  const bool is_number =
      !attempt.empty() && attempt.size() < 9 &&
      std::all_of(attempt.begin(), attempt.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (is_number) facts.attempt = std::max(1, std::stoi(attempt));
  facts.created =
      api::ParseTime(fields::TextAt(request, "/metadata/creationTimestamp")).value_or(api::Time());
  facts.since = facts.created;
  facts.deleting = !fields::TextAt(request, "/metadata/deletionTimestamp").empty();
  ReadStage(request, &facts);
  return facts;
}

void Consume(const Booking& booking, Json* pod) {
  Json& annotations = (*pod)["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = Json::object();
  annotations[kConsumeAnnotation] = booking.request;
  annotations[kClassAnnotation] = booking.class_name;
}

std::string ClassOf(const api::HorovodJob& job, const std::string& otherwise) {
  const std::string named = TemplateAnnotation(job, kClassAnnotation);
  return named.empty() ? otherwise : named;
}

std::string WrongClass(const std::string& class_name) {
  bool right = !class_name.empty() && class_name.size() <= 253;
  char before = '.';
  for (const char c : class_name) {
    const bool ends = before == '.' || before == '-';
    right = right && (IsLowerOrDigit(c) || (c == '-' && before != '.') || (c == '.' && !ends));
    before = c;
  }
  if (right && IsLowerOrDigit(before)) return "";
  return fmt::format(
      "spec.worker.template.metadata.annotations[{}] is \"{}\"; allowed are up to 253 lower case "
      "letters, digits, '-' and '.', as objects are named",
      kClassAnnotation, Cut(class_name));
}

bool BringsOwnRequest(const api::HorovodJob& job) {
  return !TemplateAnnotation(job, kConsumeAnnotation).empty();
}

Json TemplateOf(const Json& pod) {
  Json spec = api::SchedulingSpec(pod);
  // A volume that exists in one zone alone binds the pod to that zone.
  Json volumes = Json::array();
  for (const Json& volume : fields::ListAt(pod, "/spec/volumes")) {
    if (fields::Member(volume, "persistentVolumeClaim").is_object()) volumes.push_back(volume);
  }
  if (!volumes.empty()) spec["volumes"] = std::move(volumes);
  // Rules of affinity and spreading select pods by labels.
  Json labels = fields::ObjectAt(pod, "/metadata/labels");
  labels.erase(api::kReplicaIndexLabel);
  return {{"metadata", {{"labels", std::move(labels)}}}, {"spec", std::move(spec)}};
}

std::string DigestOf(Json pod_template) {
  for (const char* list : {"containers", "initContainers"}) {
    for (Json& container : pod_template["spec"][list]) {
      if (container.is_object()) container.erase("image");
    }
  }
  return api::Digest(pod_template);
}

Objects BuildObjects(const api::HorovodJob& job, const Requests& requests, const Wanted& wanted,
                     const Json& pod, const std::string& api_version, int valid_seconds) {
  const std::string name = NameOf(job, requests, wanted);
  Json metadata = Metadata(job, name);
  Json request = {
      {"apiVersion", api_version},
      {"kind", "ProvisioningRequest"},
      {"metadata", metadata},
      {"spec",
       {{"provisioningClassName", requests.class_name},
        {"podSets",
         Json::array({{{"podTemplateRef", {{"name", name}}}, {"count", wanted.count}}})}}}};
  Json& annotations = request["metadata"]["annotations"];
  annotations = {{api::kTemplateDigestAnnotation, requests.digest},
                 {api::kAttemptAnnotation, std::to_string(wanted.attempt)}};
  if (!wanted.domain.empty()) annotations[api::kDomainAnnotation] = wanted.domain;
  if (requests.class_name == kBestEffortAtomic) {
    request["spec"]["parameters"] = {{kValidUntil, std::to_string(valid_seconds)}};
  }
  return {{{"apiVersion", "v1"},
           {"kind", "PodTemplate"},
           {"metadata", std::move(metadata)},
           {"template", TemplateOf(pod)}},
          std::move(request)};
}

}  // namespace ringmaster::provisioning
